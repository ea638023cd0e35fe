#pragma once

#include <cstdint>

#include "plenum/base/thread_pool.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::model {

/// Fills the flat weights of the table with what a model begins with, and the gaps between tensors with
/// zeros. Normal numbers are a function of the seed, the tensor's name and the place in it: they depend
/// neither on the other tensors nor on the number of threads.
void initialise_weights(const describe::ParameterTable& table, std::uint64_t seed, base::ThreadPool& pool,
                        tensor::TensorView weights_N);

}  // namespace plenum::model
