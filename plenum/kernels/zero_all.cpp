#include "plenum/kernels/zero_all.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cuda/rows/zero_all.h"
#include "plenum/kernels/dispatch.h"
#include "plenum/tensor/copy.h"

namespace plenum::kernels {
namespace {

void zero_one_by_one(const tensor::Stream& stream, std::span<const tensor::TensorView> tensors) {
  for (const tensor::TensorView& one : tensors) tensor::set_zero(stream, one);
}

}  // namespace

void zero_all(const tensor::Stream& stream, std::span<const tensor::TensorView> tensors) {
  for (const tensor::TensorView& one : tensors) check_argument("one of many", one, one.shape());
  dispatch<&zero_one_by_one, &cuda::zero_all>(stream, tensors);
}

}  // namespace plenum::kernels
