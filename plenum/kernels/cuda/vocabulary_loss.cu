#include <cfloat>

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/matmul.h"
#include "plenum/kernels/cuda/reduce.cuh"
#include "plenum/kernels/cuda/vector_io.cuh"
#include "plenum/kernels/cuda/vocabulary_loss.h"
#include "plenum/tensor/cuda_check.h"

// M masked positions, D width, V words in rows of W. Logits are made by a product, summed up by one pass that
// reads them, and differentiated by one that reads and writes them.

namespace plenum::kernels::cuda {
namespace {

constexpr int kRowThreads = 256;

/// The logits of a row from `column` on. Those beyond the vocabulary are words that never come.
__device__ FloatVector load_logits(const __nv_bfloat16* logits_W, int column, int vocabulary) {
  FloatVector logits = load_vector<true>(logits_W, column, vocabulary);
  if (column + kVectorWidth > vocabulary) {
#pragma unroll
    for (int lane = 0; lane < kVectorWidth; ++lane) {
      if (column + lane >= vocabulary) logits[lane] = -INFINITY;
    }
  }
  return logits;
}

/// What a thread knows of a row. The maximum begins at a number, so that words that never come leave the sum
/// at 0; a logit that is not a number does not become the maximum, but the sum.
struct RowPart {
  float maximum = -FLT_MAX;
  float sum = 0;     ///< of the exponentials of the differences to the maximum
  int greatest = 0;  ///< the first column of the maximum

  __device__ void add(const FloatVector& logits, int column) {
    float vector_maximum = logits[0];
#pragma unroll
    for (int lane = 1; lane < kVectorWidth; ++lane) vector_maximum = fmaxf(vector_maximum, logits[lane]);
    if (vector_maximum > maximum) {
      sum *= __expf(maximum - vector_maximum);
      maximum = vector_maximum;
#pragma unroll
      for (int lane = kVectorWidth - 1; lane >= 0; --lane) {
        if (logits[lane] == maximum) greatest = column + lane;
      }
    }
#pragma unroll
    for (int lane = 0; lane < kVectorWidth; ++lane) sum += __expf(logits[lane] - maximum);
  }
};

/// A block for each row.
__global__ void __launch_bounds__(kRowThreads)
    row_losses(const __nv_bfloat16* __restrict__ logits_MW, int vocabulary, std::int64_t stride,
               const std::int32_t* __restrict__ label_M, float* __restrict__ lse_M,
               float* __restrict__ loss_M, std::int32_t* __restrict__ prediction_M) {
  const std::int64_t row = blockIdx.x;
  const __nv_bfloat16* const logits_W = logits_MW + row * stride;
  RowPart part;
#pragma unroll 4
  for (int column = static_cast<int>(threadIdx.x) * kVectorWidth; column < vocabulary;
       column += kRowThreads * kVectorWidth) {
    part.add(load_logits(logits_W, column, vocabulary), column);
  }
  __shared__ BlockReduction shared[3];
  const float maximum = block_max(part.maximum, shared[0]);
  const float sum = block_sum(part.sum * __expf(part.maximum - maximum), shared[1]);
  if (prediction_M != nullptr) {
    // The first column is the greatest negative one; a float holds it exactly.
    const float column = part.maximum == maximum ? -static_cast<float>(part.greatest) : -INFINITY;
    const float first = -block_max(column, shared[2]);
    if (threadIdx.x == 0) prediction_M[row] = static_cast<std::int32_t>(first);
  }
  if (threadIdx.x != 0) return;
  const std::int32_t label = label_M[row];
  const float log_sum = logf(sum);
  lse_M[row] = maximum + log_sum;
  loss_M[row] = label < 0 ? 0 : maximum - __bfloat162float(logits_W[label]) + log_sum;
}

/// Of row_gradients: a block has 8 vectors of columns, a line of the cache in each row, and many rows at a
/// time.
constexpr int kGradientVectors = 8;
constexpr int kGradientColumns = kGradientVectors * kVectorWidth;
constexpr int kGradientRows = 64;
constexpr int kGradientThreads = kGradientVectors * kGradientRows;

/// Replaces the logits of some columns and all rows by their gradients, and adds the columns' sums to the
/// gradient of the bias: so each sum has one owner.
__global__ void __launch_bounds__(kGradientThreads)
    column_gradients(__nv_bfloat16* __restrict__ logits_MW, std::int64_t rows, int vocabulary,
                     std::int64_t stride, const std::int32_t* __restrict__ label_M,
                     const float* __restrict__ lse_M, const double* __restrict__ scale_1,
                     float* __restrict__ db_V) {
  const int first_row = static_cast<int>(threadIdx.x) / kGradientVectors;
  const int vector = static_cast<int>(threadIdx.x) % kGradientVectors;
  const int column = static_cast<int>(blockIdx.x) * kGradientColumns + vector * kVectorWidth;
  const auto scale = static_cast<float>(*scale_1);
  FloatVector sums = {};
#pragma unroll 4
  for (std::int64_t row = first_row; row < rows; row += kGradientRows) {
    auto* const place = reinterpret_cast<uint4*>(logits_MW + row * stride + column);
    FloatVector values = unpack({*place});
    const std::int32_t label = label_M[row];
    const float lse = lse_M[row];
#pragma unroll
    for (int lane = 0; lane < kVectorWidth; ++lane) {
      const float one = column + lane == label ? 1 : 0;
      values[lane] =
          label < 0 || column + lane >= vocabulary ? 0 : scale * (__expf(values[lane] - lse) - one);
      sums[lane] += values[lane];
    }
    *place = pack(values).words;
  }
  __shared__ float sums_of_rows[kGradientRows][kGradientColumns + 1];
#pragma unroll
  for (int lane = 0; lane < kVectorWidth; ++lane) {
    sums_of_rows[first_row][vector * kVectorWidth + lane] = sums[lane];
  }
  __syncthreads();
  const int owned = static_cast<int>(threadIdx.x);
  const int owned_column = static_cast<int>(blockIdx.x) * kGradientColumns + owned;
  if (owned >= kGradientColumns || owned_column >= vocabulary) return;
  float sum = 0;
  for (int row = 0; row < kGradientRows; ++row) sum += sums_of_rows[row][owned];
  db_V[owned_column] += sum;
}

}  // namespace

void vocabulary_loss_forward(const tensor::Stream& stream, const VocabularyLossForward& args) {
  const std::int64_t M = args.h_MD.size(0);
  const std::int64_t D = args.h_MD.size(1);
  const std::int64_t V = args.w_VD.size(0);
  const std::int64_t W = args.logits_MW.size(1);
  matmul(stream, {.m = M,
                  .n = V,
                  .k = D,
                  .a = {.data = args.h_MD.data<tensor::BFloat16>(), .stride = D},
                  .b = {.data = args.w_VD.data<tensor::BFloat16>(), .stride = D, .is_transposed = true},
                  .c = args.logits_MW.raw(),
                  .c_stride = W,
                  .epilogue = {.bias = args.b_V.data<tensor::BFloat16>()}});
  row_losses<<<static_cast<unsigned>(M), kRowThreads, 0, stream.cuda().handle()>>>(
      bfloat16_data(args.logits_MW), static_cast<int>(V), W, args.label_M.data<std::int32_t>(),
      args.lse_M.data<float>(), args.loss_M.data<float>(),
      args.prediction_M ? args.prediction_M.data<std::int32_t>() : nullptr);
  tensor::check_cuda(cudaGetLastError(), "compute the losses of words");
}

void vocabulary_loss_backward(const tensor::Stream& stream, const VocabularyLossBackward& args) {
  const std::int64_t M = args.h_MD.size(0);
  const std::int64_t D = args.h_MD.size(1);
  const std::int64_t V = args.w_VD.size(0);
  const std::int64_t W = args.logits_MW.size(1);
  static_assert(kGradientColumns == 64, "rows of logits are a multiple of it");
  column_gradients<<<static_cast<unsigned>(W / kGradientColumns), kGradientThreads, 0,
                     stream.cuda().handle()>>>(bfloat16_data(args.logits_MW), M, static_cast<int>(V), W,
                                               args.label_M.data<std::int32_t>(), args.lse_M.data<float>(),
                                               args.scale_1.data<double>(), args.db_V.data<float>());
  tensor::check_cuda(cudaGetLastError(), "compute the gradients of words");
  const MatmulOperand dlogits = {.data = args.logits_MW.data<tensor::BFloat16>(), .stride = W};
  matmul(stream, {.m = M,
                  .n = D,
                  .k = V,
                  .a = dlogits,
                  .b = {.data = args.w_VD.data<tensor::BFloat16>(), .stride = D},
                  .c = args.dh_MD.raw(),
                  .c_stride = D});
  matmul(stream, {.m = V,
                  .n = D,
                  .k = M,
                  .a = {.data = dlogits.data, .stride = W, .is_transposed = true},
                  .b = {.data = args.h_MD.data<tensor::BFloat16>(), .stride = D},
                  .c = args.dw_VD.raw(),
                  .c_dtype = tensor::DType::Float32,
                  .c_stride = D,
                  .accumulate = Accumulate::Yes});
}

std::size_t vocabulary_loss_scratch_bytes() {
  return matmul_scratch_bytes();
}

}  // namespace plenum::kernels::cuda
