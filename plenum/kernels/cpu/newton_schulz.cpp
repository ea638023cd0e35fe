#include "plenum/kernels/cpu/newton_schulz.h"

#include <algorithm>

#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/gemm.h"
#include "plenum/kernels/cpu/vector.h"

// R rows and C columns of a matrix, K the lesser of them.

namespace plenum::kernels::cpu {
namespace {

/// One matrix and where its squares are made.
struct Iteration {
  std::int64_t R, C, K;
  float* a_KK;
  float* b_KK;
};

/// A = X X^T, or X^T X of a tall matrix.
void square_matrix(const tensor::Stream& stream, const Iteration& at, const float* x_RC) {
  const bool is_tall = at.R > at.C;
  parallel_gemm(stream, {.m = at.K,
                         .n = at.K,
                         .k = is_tall ? at.R : at.C,
                         .a = {.data = x_RC, .stride = at.C, .is_transposed = is_tall},
                         .b = {.data = x_RC, .stride = at.C, .is_transposed = !is_tall},
                         .c = at.a_KK,
                         .c_stride = at.K});
}

/// B = a I + b A + c A A.
void make_polynomial(const tensor::Stream& stream, const Iteration& at) {
  parallel_gemm(stream, {.m = at.K,
                         .n = at.K,
                         .k = at.K,
                         .a = {.data = at.a_KK, .stride = at.K},
                         .b = {.data = at.a_KK, .stride = at.K},
                         .c = at.b_KK,
                         .c_stride = at.K,
                         .alpha = kNewtonSchulzC});
  stream.pool().run(static_cast<std::size_t>(at.K), [&](std::size_t row, std::size_t) {
    const float* const a = at.a_KK + static_cast<std::int64_t>(row) * at.K;
    float* const b = at.b_KK + static_cast<std::int64_t>(row) * at.K;
    for_vectors(0, at.K, [&](std::int64_t i, auto lanes) {
      store_first(b + i, load_first(b + i, lanes) + load_first(a + i, lanes) * kNewtonSchulzB, lanes);
    });
    b[row] += kNewtonSchulzA;
  });
}

/// Y = B X, or X B of a tall matrix.
void apply_polynomial(const tensor::Stream& stream, const Iteration& at, const float* x_RC, float* y_RC) {
  const GemmOperand x = {.data = x_RC, .stride = at.C};
  const GemmOperand b = {.data = at.b_KK, .stride = at.K};
  const bool is_tall = at.R > at.C;
  parallel_gemm(stream, {.m = at.R,
                         .n = at.C,
                         .k = at.K,
                         .a = is_tall ? x : b,
                         .b = is_tall ? b : x,
                         .c = y_RC,
                         .c_stride = at.C});
}

}  // namespace

void newton_schulz(const tensor::Stream& stream, const NewtonSchulz& args) {
  const std::int64_t K = std::min(args.rows, args.columns);
  auto* const squares = args.squares_2BKK.data<float>();
  // Matrices share the first one's squares: each is done before the next begins.
  const Iteration at = {args.rows, args.columns, K, squares, squares + args.num_matrices * K * K};
  for (std::int64_t i = 0; i < args.num_matrices; ++i) {
    float* from = args.x.data<float>() + i * args.stride;
    float* to = args.y.data<float>() + i * args.stride;
    for (int iteration = 0; iteration < kNewtonSchulzIterations; ++iteration) {
      square_matrix(stream, at, from);
      make_polynomial(stream, at);
      apply_polynomial(stream, at, from, to);
      std::swap(from, to);
    }
  }
}

}  // namespace plenum::kernels::cpu
