#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/product/float_matmul.h"
#include "plenum/kernels/cuda/product/precondition.h"
#include "plenum/tensor/cuda_check.h"
#include "plenum/workspace/optimizer.h"

namespace plenum::kernels::cuda {
namespace {

using workspace::kSquaresBlock;

constexpr int kThreads = 256;

/// The squares of a block's elements of the gradient and of the product: sums_B2.
__global__ void __launch_bounds__(kThreads)
    sum_squares(const float* __restrict__ gradient, const float* __restrict__ product,
                std::int64_t num_elements, double* __restrict__ sums_B2) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * kSquaresBlock;
  const std::int64_t end = min(begin + kSquaresBlock, num_elements);
  double before = 0;
  double after = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    before += double{gradient[i]} * double{gradient[i]};
    after += double{product[i]} * double{product[i]};
  }
  __shared__ BlockReductionOf<double> shared_before;
  __shared__ BlockReductionOf<double> shared_after;
  before = block_sum(before, shared_before);
  after = block_sum(after, shared_after);
  if (threadIdx.x == 0) {
    sums_B2[2 * blockIdx.x] = before;
    sums_B2[2 * blockIdx.x + 1] = after;
  }
}

/// Every block adds up the same sums in the same order.
__global__ void __launch_bounds__(kThreads)
    rescale(const double* __restrict__ sums_B2, int num_sums, const double* __restrict__ state_C,
            const float* __restrict__ product, std::int64_t num_elements, float* __restrict__ gradient) {
  if (state_C[index_of(InverseState::IsReady)] == 0) return;
  double before = 0;
  double after = 0;
  for (int i = 0; i < num_sums; ++i) {
    before += sums_B2[2 * i];
    after += sums_B2[2 * i + 1];
  }
  const auto scale = static_cast<float>(sqrt(before / after));
  if (!(isfinite(scale) && scale > 0)) return;
  const std::int64_t begin = std::int64_t{blockIdx.x} * kSquaresBlock;
  const std::int64_t end = min(begin + kSquaresBlock, num_elements);
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) gradient[i] = scale * product[i];
}

}  // namespace

void precondition(const tensor::Stream& stream, const Precondition& args) {
  const std::int64_t E = args.gradient_ED.size(0);
  const std::int64_t D = args.gradient_ED.size(1);
  check_scratch(stream, workspace::kronecker_scratch_bytes(tensor::Device::Cuda, E * D));
  float* const gradient = args.gradient_ED.data<float>();
  float* const half = args.work_2ED.data<float>();
  float* const whole = half + E * D;
  float_matmul(stream, {.m = E,
                        .n = D,
                        .k = D,
                        .a = {.data = gradient, .stride = D},
                        .b = {.data = args.inverse_a_DD.data<float>(), .stride = D},
                        .c = half,
                        .c_stride = D});
  float_matmul(stream, {.m = E,
                        .n = D,
                        .k = E,
                        .a = {.data = args.inverse_b_EE.data<float>(), .stride = E},
                        .b = {.data = half, .stride = D},
                        .c = whole,
                        .c_stride = D});
  auto* const sums_B2 = reinterpret_cast<double*>(stream.scratch().data());
  const auto num_blocks = static_cast<unsigned>(workspace::num_square_blocks(E * D));
  cudaStream_t queue = stream.cuda().handle();
  sum_squares<<<num_blocks, kThreads, 0, queue>>>(gradient, whole, E * D, sums_B2);
  rescale<<<num_blocks, kThreads, 0, queue>>>(sums_B2, static_cast<int>(num_blocks),
                                              args.state_C.data<double>(), whole, E * D, gradient);
  tensor::check_cuda(cudaGetLastError(), "rescale a preconditioned gradient");
}

}  // namespace plenum::kernels::cuda
