#pragma once

#include "plenum/describe/parameter_shard.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/kernels/accumulate.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::pipeline {

/// Adds a rank's part of a bucket, as one micro-batch of each rank gave it, to the gradient of its shard, or
/// overwrites that. What lies between tensors is left out. On the CPU.
void add_gradient_round(const describe::ParameterTable& table, const describe::ParameterShard::Bucket& bucket,
                        const tensor::ConstTensorView& round, kernels::Accumulate accumulate,
                        const tensor::TensorView& sum);

}  // namespace plenum::pipeline
