#pragma once

#include <cstdint>
#include <functional>

#include "plenum/tensor/cuda_device.h"

namespace plenum::train {

/// The tokens of a micro-batch on a GPU where the user gives none: 512 for each multiprocessor, so that
/// products end on all of them at once, halved while `planned_bytes` of a run with so many are more than four
/// fifths of its memory; at least `least`. All of its memory and not what is free of it: a run that
/// resumes must find the same number, for it decides the order of sums.
std::int64_t gpu_micro_batch_tokens(const tensor::CudaDeviceInfo& gpu, std::int64_t least,
                                    const std::function<std::uint64_t(std::int64_t)>& planned_bytes);

}  // namespace plenum::train
