#include "plenum/kernels/matmul_choices.h"

#include "plenum/kernels/cuda/product/matmul_choices.h"

namespace plenum::kernels {

MatmulChoices matmul_choices(const tensor::Stream& stream) {
  if (stream.device() == tensor::Device::Cuda) return cuda::matmul_choices(stream);
  return {};
}

bool use_matmul_choices(const tensor::Stream& stream, const MatmulChoices& choices) {
  if (stream.device() == tensor::Device::Cuda) return cuda::use_matmul_choices(stream, choices);
  return choices == MatmulChoices{};
}

}  // namespace plenum::kernels
