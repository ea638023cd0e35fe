#include "plenum/kernels/zero_all.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cuda/rows/zero_all.h"
#include "plenum/tensor/copy.h"

namespace plenum::kernels {

void zero_all(const tensor::Stream& stream, std::span<const tensor::TensorView> tensors) {
  for (const tensor::TensorView& one : tensors) check_argument("one of many", one, one.shape());
  if (stream.device() == tensor::Device::Cuda) return cuda::zero_all(stream, tensors);
  for (const tensor::TensorView& one : tensors) tensor::set_zero(stream, one);
}

}  // namespace plenum::kernels
