#include <algorithm>
#include <utility>

#include <cuda_bf16.h>

#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/product/matmul.h"
#include "plenum/kernels/cuda/product/newton_schulz.h"
#include "plenum/tensor/cuda_check.h"

// B matrices of R rows and C columns, K the lesser of these. All of a group are multiplied by one call.

namespace plenum::kernels::cuda {
namespace {

using tensor::BFloat16;

constexpr int kThreads = 256;

/// Makes b, which is the square of a, the polynomial: an element for each thread, a row for each block.
__global__ void __launch_bounds__(kThreads)
    make_polynomial(const __nv_bfloat16* __restrict__ a_BKK, __nv_bfloat16* __restrict__ b_BKK,
                    std::int64_t K) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t begin = row * K;
  for (std::int64_t i = threadIdx.x; i < K; i += kThreads) {
    const float a = __bfloat162float(a_BKK[begin + i]);
    const float square = __bfloat162float(b_BKK[begin + i]);
    const float diagonal = i == row % K ? kNewtonSchulzA : 0.0F;
    b_BKK[begin + i] = __float2bfloat16_rn(diagonal + (kNewtonSchulzB * a + kNewtonSchulzC * square));
  }
}

/// The matrices of a group and where their squares are made.
struct Iteration {
  std::int64_t B, R, C, K, stride;
  BFloat16 *a_BKK, *b_BKK;

  bool is_tall() const { return R > C; }
  MatmulOperand matrix(const BFloat16* data, bool is_transposed) const {
    return {.data = data, .stride = C, .is_transposed = is_transposed, .batch_stride = stride};
  }
  MatmulOperand square(const BFloat16* data) const {
    return {.data = data, .stride = K, .batch_stride = K * K};
  }
};

/// A = X X^T, or X^T X of tall matrices.
void square_matrices(const tensor::Stream& stream, const Iteration& at, const BFloat16* x) {
  matmul(stream, {.m = at.K,
                  .n = at.K,
                  .k = at.is_tall() ? at.R : at.C,
                  .a = at.matrix(x, at.is_tall()),
                  .b = at.matrix(x, !at.is_tall()),
                  .c = at.a_BKK,
                  .c_stride = at.K,
                  .num_products = at.B,
                  .c_batch_stride = at.K * at.K});
}

/// B = a I + b A + c A A.
void make_polynomials(const tensor::Stream& stream, const Iteration& at) {
  matmul(stream, {.m = at.K,
                  .n = at.K,
                  .k = at.K,
                  .a = at.square(at.a_BKK),
                  .b = at.square(at.a_BKK),
                  .c = at.b_BKK,
                  .c_stride = at.K,
                  .num_products = at.B,
                  .c_batch_stride = at.K * at.K});
  make_polynomial<<<static_cast<unsigned>(at.B * at.K), kThreads, 0, stream.cuda().handle()>>>(
      reinterpret_cast<const __nv_bfloat16*>(at.a_BKK), reinterpret_cast<__nv_bfloat16*>(at.b_BKK), at.K);
  tensor::check_cuda(cudaGetLastError(), "make the polynomial of a Newton-Schulz iteration");
}

/// Y = B X, or X B of tall matrices.
void apply_polynomials(const tensor::Stream& stream, const Iteration& at, const BFloat16* x, BFloat16* y) {
  matmul(stream, {.m = at.R,
                  .n = at.C,
                  .k = at.K,
                  .a = at.is_tall() ? at.matrix(x, false) : at.square(at.b_BKK),
                  .b = at.is_tall() ? at.square(at.b_BKK) : at.matrix(x, false),
                  .c = y,
                  .c_stride = at.C,
                  .num_products = at.B,
                  .c_batch_stride = at.stride});
}

}  // namespace

void newton_schulz(const tensor::Stream& stream, const NewtonSchulz& args) {
  const std::int64_t K = std::min(args.rows, args.columns);
  auto* const squares = args.squares_2BKK.data<BFloat16>();
  const Iteration at = {.B = args.num_matrices,
                        .R = args.rows,
                        .C = args.columns,
                        .K = K,
                        .stride = args.num_matrices > 1 ? args.stride : 0,
                        .a_BKK = squares,
                        .b_BKK = squares + args.num_matrices * K * K};
  auto* from = args.x.data<BFloat16>();
  auto* to = args.y.data<BFloat16>();
  for (int iteration = 0; iteration < kNewtonSchulzIterations; ++iteration) {
    square_matrices(stream, at, from);
    make_polynomials(stream, at);
    apply_polynomials(stream, at, from, to);
    std::swap(from, to);
  }
}

}  // namespace plenum::kernels::cuda
