#include "plenum/kernels/matmul_choices.h"

#include "plenum/kernels/cuda/product/matmul_choices.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

MatmulChoices no_choices(const tensor::Stream&) {
  return {};
}
bool use_no_choices(const tensor::Stream&, const MatmulChoices& choices) {
  return choices == MatmulChoices{};
}

}  // namespace

MatmulChoices matmul_choices(const tensor::Stream& stream) {
  return dispatch<&no_choices, &cuda::matmul_choices>(stream);
}

bool use_matmul_choices(const tensor::Stream& stream, const MatmulChoices& choices) {
  return dispatch<&use_no_choices, &cuda::use_matmul_choices>(stream, choices);
}

}  // namespace plenum::kernels
