#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/rows/squared_loss.h"
#include "plenum/tensor/cuda_check.h"

// M rows: a few hundred at most, so a thread does one, in double precision.

namespace plenum::kernels::cuda {
namespace {

constexpr unsigned kThreads = 128;

unsigned num_blocks(std::int64_t rows) {
  return static_cast<unsigned>((rows + kThreads - 1) / kThreads);
}

/// logit - y; 0 where there is no label.
__device__ double error_of(__nv_bfloat16 logit, std::int32_t label) {
  return label == -1 ? 0.0 : double{__bfloat162float(logit)} - double{__int_as_float(label)};
}

__global__ void __launch_bounds__(kThreads)
    squared_errors(const __nv_bfloat16* __restrict__ logits_M1, const std::int32_t* __restrict__ label_M,
                   std::int64_t rows, float* __restrict__ loss_M) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  const double error = error_of(logits_M1[row], label_M[row]);
  loss_M[row] = static_cast<float>(error * error);
}

/// Gradients may take the place of logits.
__global__ void __launch_bounds__(kThreads)
    error_gradients(const __nv_bfloat16* logits_M1, const std::int32_t* __restrict__ label_M,
                    const double* __restrict__ scale_1, std::int64_t rows, __nv_bfloat16* dlogits_M1) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  const std::int32_t label = label_M[row];
  const double scale = label == -1 ? 0.0 : 2 * *scale_1;
  dlogits_M1[row] = __float2bfloat16_rn(static_cast<float>(scale * error_of(logits_M1[row], label)));
}

}  // namespace

void squared_loss_forward(const tensor::Stream& stream, const SquaredLossForward& args) {
  const std::int64_t rows = args.label_M.size(0);
  if (rows == 0) return;
  squared_errors<<<num_blocks(rows), kThreads, 0, stream.cuda().handle()>>>(
      bfloat16_data(args.logits_M1), args.label_M.data<std::int32_t>(), rows, args.loss_M.data<float>());
  tensor::check_cuda(cudaGetLastError(), "compute squared errors");
}

void squared_loss_backward(const tensor::Stream& stream, const SquaredLossBackward& args) {
  const std::int64_t rows = args.label_M.size(0);
  if (rows == 0) return;
  error_gradients<<<num_blocks(rows), kThreads, 0, stream.cuda().handle()>>>(
      bfloat16_data(args.logits_M1), args.label_M.data<std::int32_t>(), args.scale_1.data<double>(), rows,
      bfloat16_data(args.dlogits_M1));
  tensor::check_cuda(cudaGetLastError(), "compute the gradients of squared errors");
}

}  // namespace plenum::kernels::cuda
