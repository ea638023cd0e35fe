#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/rows/class_loss.h"
#include "plenum/tensor/cuda_check.h"

// S rows, C classes: a few hundred numbers at most, so a thread does a row, in double precision.

namespace plenum::kernels::cuda {
namespace {

constexpr unsigned kThreads = 128;

unsigned num_blocks(std::int64_t rows) {
  return static_cast<unsigned>((rows + kThreads - 1) / kThreads);
}

__device__ double log_sum_exp(const __nv_bfloat16* logits_C, std::int64_t classes) {
  double maximum = __bfloat162float(logits_C[0]);
  for (std::int64_t i = 1; i < classes; ++i) maximum = fmax(maximum, double{__bfloat162float(logits_C[i])});
  double sum = 0;
  for (std::int64_t i = 0; i < classes; ++i) sum += exp(double{__bfloat162float(logits_C[i])} - maximum);
  return maximum + log(sum);
}

__global__ void __launch_bounds__(kThreads)
    row_losses(const __nv_bfloat16* __restrict__ logits_SC, const std::int32_t* __restrict__ label_S,
               std::int64_t rows, std::int64_t classes, float* __restrict__ loss_S) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  const __nv_bfloat16* const logits_C = logits_SC + row * classes;
  const std::int32_t label = label_S[row];
  loss_S[row] =
      label < 0
          ? 0
          : static_cast<float>(log_sum_exp(logits_C, classes) - double{__bfloat162float(logits_C[label])});
}

/// Gradients may take the place of logits: a thread has read its row before it writes it, and each logit
/// again just before its gradient.
__global__ void __launch_bounds__(kThreads)
    row_gradients(const __nv_bfloat16* logits_SC, const std::int32_t* __restrict__ label_S,
                  const double* __restrict__ scale_1, std::int64_t rows, std::int64_t classes,
                  __nv_bfloat16* dlogits_SC) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  const __nv_bfloat16* const logits_C = logits_SC + row * classes;
  const std::int32_t label = label_S[row];
  const double scale = label < 0 ? 0.0 : *scale_1;
  const double lse = log_sum_exp(logits_C, classes);
  for (std::int64_t i = 0; i < classes; ++i) {
    const double share = exp(double{__bfloat162float(logits_C[i])} - lse) - (i == label ? 1.0 : 0.0);
    dlogits_SC[row * classes + i] = __float2bfloat16_rn(static_cast<float>(scale * share));
  }
}

}  // namespace

void class_loss_forward(const tensor::Stream& stream, const ClassLossForward& args) {
  const std::int64_t rows = args.logits_SC.size(0);
  if (rows == 0) return;
  row_losses<<<num_blocks(rows), kThreads, 0, stream.cuda().handle()>>>(
      bfloat16_data(args.logits_SC), args.label_S.data<std::int32_t>(), rows, args.logits_SC.size(1),
      args.loss_S.data<float>());
  tensor::check_cuda(cudaGetLastError(), "compute the losses of classes");
}

void class_loss_backward(const tensor::Stream& stream, const ClassLossBackward& args) {
  const std::int64_t rows = args.logits_SC.size(0);
  if (rows == 0) return;
  row_gradients<<<num_blocks(rows), kThreads, 0, stream.cuda().handle()>>>(
      bfloat16_data(args.logits_SC), args.label_S.data<std::int32_t>(), args.scale_1.data<double>(), rows,
      args.logits_SC.size(1), bfloat16_data(args.dlogits_SC));
  tensor::check_cuda(cudaGetLastError(), "compute the gradients of classes");
}

}  // namespace plenum::kernels::cuda
