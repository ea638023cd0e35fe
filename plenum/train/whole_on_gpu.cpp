#include "plenum/train/whole_on_gpu.h"

#include "plenum/kernels/convert.h"
#include "plenum/tensor/copy.h"

namespace plenum::train {

using tensor::Role;

namespace {

tensor::TensorView add(const describe::ParameterTable& table, Role role, tensor::MemoryPlan& memory) {
  return memory.add("whole weights", role, {table.num_elements()});
}

}  // namespace

tensor::MemoryLayout WholeOnGpu::plan_memory(const describe::ParameterTable& table,
                                             const tensor::Precision& precision) {
  tensor::MemoryPlan sizes(tensor::Device::Cuda, precision);
  add(table, Role::Master, sizes);
  add(table, Role::Weight, sizes);
  return sizes.layout();
}

WholeOnGpu::WholeOnGpu(const describe::ParameterTable& table, const tensor::Stream& stream)
    : stream_(stream),
      arena_(plan_memory(table, stream.precision()), tensor::Device::Cuda),
      memory_(arena_, stream.precision()),
      exact_N_(add(table, Role::Master, memory_)),
      compute_N_(add(table, Role::Weight, memory_)) {}

void WholeOnGpu::put(const tensor::ConstTensorView& weights_N) const {
  tensor::copy(stream_, weights_N, exact_N_);
  kernels::round_to_compute(stream_, {.x_N = exact_N_, .y_N = compute_N_});
  stream_.wait();
}

}  // namespace plenum::train
