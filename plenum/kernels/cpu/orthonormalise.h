#pragma once

#include <cstdint>

#include "plenum/kernels/orthonormalise.h"

namespace plenum::kernels::cpu {

void orthonormalise(const tensor::Stream& stream, const Orthonormalise& args);

/// Steps [first, end) of it (kernels::num_orthonormalise_steps): all of them, however they are cut, give its
/// bytes.
void orthonormalise_steps(const tensor::Stream& stream, const Orthonormalise& args, std::int64_t first,
                          std::int64_t end);

}  // namespace plenum::kernels::cpu
