// Stands for *_sm90.cu in a build without: nothing but has_sm90_kernels() is ever asked there.
#include "plenum/base/check.h"
#include "plenum/kernels/cuda/attention/attention_sm90.h"
#include "plenum/kernels/cuda/device/sm90.h"
#include "plenum/kernels/cuda/product/mlp_gelu_sm90.h"

namespace plenum::kernels::cuda {
namespace {

[[noreturn]] void refuse() {
  throw base::InternalError("this build has no kernels for Hopper");
}

}  // namespace

bool has_sm90_kernels() {
  return false;
}

cudaError_t attention_forward_sm90(const AttentionArguments&, cudaStream_t) {
  refuse();
}

cudaError_t attention_backward_sm90(const AttentionArguments&, cudaStream_t) {
  refuse();
}

cudaError_t mlp_gelu_forward_sm90(const GeluForwardProduct&, cudaStream_t) {
  refuse();
}

cudaError_t mlp_gelu_backward_sm90(const GeluBackwardProduct&, cudaStream_t) {
  refuse();
}

}  // namespace plenum::kernels::cuda
