#include <vector>

#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/device/vector_io.cuh"
#include "plenum/kernels/cuda/product/matmul.h"
#include "plenum/kernels/cuda/product/vocabulary_loss.h"
#include "plenum/tensor/cuda_check.h"

// M masked positions, D width, V words in rows of W. Logits are made by a product, summed up by one pass that
// reads them, and differentiated by one that reads and writes them. See docs/math/cross_entropy.md.

namespace plenum::kernels::cuda {
namespace {

using tensor::BFloat16;

constexpr float kLog2E = 1.4426950408889634F;
/// Below all logits of a model that works, and still a number when multiplied by kLog2E.
constexpr float kLeastMaximum = -1e38F;

/// 2^x in one instruction: exp(z - m) is exp2(z * kLog2E - m * kLog2E), a multiplication and addition more.
__device__ float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// Eight neighbours of a row. A row of logits is whole vectors, whatever the vocabulary.
__device__ uint4& vector_at(__nv_bfloat16* place) {
  return *reinterpret_cast<uint4*>(place);
}
__device__ const uint4& vector_at(const __nv_bfloat16* place) {
  return *reinterpret_cast<const uint4*>(place);
}

/// Sets those of eight neighbours from `column` on that lie behind the vocabulary.
__device__ void set_behind(FloatVector& values, int column, int vocabulary, float value) {
  if (column + kVectorWidth <= vocabulary) return;
#pragma unroll
  for (int lane = 0; lane < kVectorWidth; ++lane) {
    if (column + lane >= vocabulary) values[lane] = value;
  }
}

/// What a thread knows of a row. The maximum begins at a number, so that words of minus infinity leave the
/// sum at 0; a logit that is not a number does not become the maximum, but the sum.
struct RowPart {
  float maximum = kLeastMaximum;
  float sum = 0;     ///< of the exponentials of the differences to the maximum
  int greatest = 0;  ///< the first column of the maximum

  __device__ void add(const FloatVector& logits, int column) {
    float vector_maximum = logits[0];
#pragma unroll
    for (int lane = 1; lane < kVectorWidth; ++lane) vector_maximum = fmaxf(vector_maximum, logits[lane]);
    if (vector_maximum > maximum) {
      sum *= exp2_fast((maximum - vector_maximum) * kLog2E);
      maximum = vector_maximum;
#pragma unroll
      for (int lane = kVectorWidth - 1; lane >= 0; --lane) {
        if (logits[lane] == maximum) greatest = column + lane;
      }
    }
    const float shift = maximum * kLog2E;
#pragma unroll
    for (int lane = 0; lane < kVectorWidth; ++lane) sum += exp2_fast(fmaf(logits[lane], kLog2E, -shift));
  }
};

constexpr int kRowThreads = 256;

/// Where a slice of the vocabulary leaves what it knows of rows; null: it is all of the vocabulary.
struct SliceParts {
  float4* part_M;  ///< maximum, sum, the label's logit, word of the maximum
  int first_word;
};

/// A block for each row.
__global__ void __launch_bounds__(kRowThreads)
    row_losses(const __nv_bfloat16* __restrict__ logits_MW, int vocabulary, std::int64_t stride,
               const std::int32_t* __restrict__ label_M, float* __restrict__ lse_M,
               float* __restrict__ loss_M, std::int32_t* __restrict__ prediction_M, SliceParts parts) {
  const std::int64_t row = blockIdx.x;
  const __nv_bfloat16* const logits_W = logits_MW + row * stride;
  RowPart part;
  for (int column = static_cast<int>(threadIdx.x) * kVectorWidth; column < vocabulary;
       column += kRowThreads * kVectorWidth) {
    FloatVector logits = unpack({vector_at(logits_W + column)});
    set_behind(logits, column, vocabulary, -INFINITY);
    part.add(logits, column);
  }
  __shared__ BlockReduction shared[3];
  const float maximum = block_max(part.maximum, shared[0]);
  const float sum = block_sum(part.sum * exp2_fast((part.maximum - maximum) * kLog2E), shared[1]);
  float first = 0;
  if (prediction_M != nullptr || parts.part_M != nullptr) {
    // The first column is the greatest negative one; a float holds it exactly.
    const float column = part.maximum == maximum ? -static_cast<float>(part.greatest) : -INFINITY;
    first = -block_max(column, shared[2]);
  }
  if (threadIdx.x != 0) return;
  const std::int32_t label = label_M[row];
  if (parts.part_M != nullptr) {
    const std::int32_t here = label - parts.first_word;
    const bool has_label = label >= 0 && here >= 0 && here < vocabulary;
    parts.part_M[row] = {maximum, sum, has_label ? __bfloat162float(logits_W[here]) : 0.0F,
                         static_cast<float>(parts.first_word) + first};
    return;
  }
  if (prediction_M != nullptr) prediction_M[row] = static_cast<std::int32_t>(first);
  const float log_sum = logf(sum);
  lse_M[row] = maximum + log_sum;
  loss_M[row] = label < 0 ? 0 : maximum - __bfloat162float(logits_W[label]) + log_sum;
}

/// A thread for each row: combines what the slices know of it, in their order.
__global__ void __launch_bounds__(kRowThreads)
    combine_parts(const float4* __restrict__ part_PM, int num_parts, int rows,
                  const std::int32_t* __restrict__ label_M, float* __restrict__ lse_M,
                  float* __restrict__ loss_M, std::int32_t* __restrict__ prediction_M) {
  const int row = static_cast<int>(blockIdx.x) * kRowThreads + static_cast<int>(threadIdx.x);
  if (row >= rows) return;
  float4 best = part_PM[row];
  for (int i = 1; i < num_parts; ++i) {
    const float4 part = part_PM[std::int64_t{i} * rows + row];
    if (part.x > best.x) best = part;
  }
  float sum = 0;
  float logit = 0;
  for (int i = 0; i < num_parts; ++i) {
    const float4 part = part_PM[std::int64_t{i} * rows + row];
    sum += part.y * exp2_fast((part.x - best.x) * kLog2E);
    logit += part.z;
  }
  const float log_sum = logf(sum);
  lse_M[row] = best.x + log_sum;
  loss_M[row] = label_M[row] < 0 ? 0 : best.x - logit + log_sum;
  if (prediction_M != nullptr) prediction_M[row] = static_cast<std::int32_t>(best.w);
}

/// Turns the logits of eight neighbouring words into their gradients.
__device__ void differentiate(FloatVector& values, int column, int vocabulary, std::int32_t label,
                              int first_word, float lse, float scale) {
  const float row_scale = label < 0 ? 0 : scale;
  const std::int32_t here = label - first_word;
  const float shift = lse * kLog2E;
#pragma unroll
  for (int lane = 0; lane < kVectorWidth; ++lane) {
    values[lane] = row_scale * exp2_fast(fmaf(values[lane], kLog2E, -shift));
  }
  if (here >= column && here < column + kVectorWidth) {
#pragma unroll
    for (int lane = 0; lane < kVectorWidth; ++lane) {
      if (column + lane == here) values[lane] -= row_scale;
    }
  }
  set_behind(values, column, vocabulary, 0);
}

/// A block of column_gradients has a line of the cache in each row, and so many rows at a time.
constexpr int kLineVectors = 8;
constexpr int kLineColumns = kLineVectors * kVectorWidth;
constexpr int kLineRows = 32;
/// Rows that a thread loads before it stores the first: stores would hold up the loads behind them.
constexpr int kRowsInFlight = 2;

/// Replaces the logits of some columns and all rows by their gradients, and adds the columns' sums to the
/// gradient of the bias: each sum has one owner.
__global__ void __launch_bounds__(kLineVectors* kLineRows)
    column_gradients(__nv_bfloat16* __restrict__ logits_MW, std::int64_t rows, int vocabulary,
                     std::int64_t stride, const std::int32_t* __restrict__ label_M,
                     const float* __restrict__ lse_M, const double* __restrict__ scale_1,
                     float* __restrict__ db_V, int first_word) {
  const int first_row = static_cast<int>(threadIdx.x) / kLineVectors;
  const int line_column = static_cast<int>(threadIdx.x) % kLineVectors * kVectorWidth;
  const int column = static_cast<int>(blockIdx.x) * kLineColumns + line_column;
  const auto scale = static_cast<float>(*scale_1);
  FloatVector sums = {};
  for (std::int64_t begin = first_row; begin < rows; begin += kLineRows * kRowsInFlight) {
    PackedVector loaded[kRowsInFlight];
#pragma unroll
    for (int i = 0; i < kRowsInFlight; ++i) {
      const std::int64_t row = begin + i * kLineRows;
      if (row < rows) loaded[i] = {vector_at(logits_MW + row * stride + column)};
    }
#pragma unroll
    for (int i = 0; i < kRowsInFlight; ++i) {
      const std::int64_t row = begin + i * kLineRows;
      if (row >= rows) break;
      FloatVector values = unpack(loaded[i]);
      differentiate(values, column, vocabulary, label_M[row], first_word, lse_M[row], scale);
#pragma unroll
      for (int lane = 0; lane < kVectorWidth; ++lane) sums[lane] += values[lane];
      vector_at(logits_MW + row * stride + column) = pack(values).words;
    }
  }
  __shared__ float sums_of_rows[kLineRows][kLineColumns + 1];
#pragma unroll
  for (int lane = 0; lane < kVectorWidth; ++lane) sums_of_rows[first_row][line_column + lane] = sums[lane];
  __syncthreads();
  const int own = static_cast<int>(threadIdx.x);
  const int own_column = static_cast<int>(blockIdx.x) * kLineColumns + own;
  if (own >= kLineColumns || own_column >= vocabulary) return;
  float sum = 0;
  for (int row = 0; row < kLineRows; ++row) sum += sums_of_rows[row][own];
  db_V[own_column] += sum;
}

/// Words that a product covers.
struct Words {
  std::int64_t begin;
  std::int64_t count;
};

/// Products are fast where sizes are multiples of eight, and take three times as long where they are not. So
/// the few words beyond such a multiple get products of their own. Those come first: where results of both
/// are added, the large part is then rounded once.
std::vector<Words> word_parts(std::int64_t vocabulary) {
  constexpr std::int64_t kMultiple = 8;
  const std::int64_t most = vocabulary / kMultiple * kMultiple;
  std::vector<Words> parts;
  if (most < vocabulary) parts.push_back({most, vocabulary - most});
  if (most > 0) parts.push_back({0, most});
  return parts;
}

}  // namespace

void vocabulary_loss_forward(const tensor::Stream& stream, const VocabularyLossForward& args) {
  const std::int64_t M = args.h_MD.size(0);
  const std::int64_t D = args.h_MD.size(1);
  const std::int64_t V = args.w_VD.size(0);
  const std::int64_t W = args.logits_MW.size(1);
  for (const Words& words : word_parts(V)) {
    matmul(stream,
           {.m = M,
            .n = words.count,
            .k = D,
            .a = {.data = args.h_MD.data<BFloat16>(), .stride = D},
            .b = {.data = args.w_VD.data<BFloat16>() + words.begin * D, .stride = D, .is_transposed = true},
            .c = args.logits_MW.data<BFloat16>() + words.begin,
            .c_stride = W,
            .bias = args.b_V.data<BFloat16>() + words.begin});
  }
  row_losses<<<static_cast<unsigned>(M), kRowThreads, 0, stream.cuda().handle()>>>(
      bfloat16_data(args.logits_MW), static_cast<int>(V), W, args.label_M.data<std::int32_t>(),
      args.part_M4 ? nullptr : args.lse_M.data<float>(), args.part_M4 ? nullptr : args.loss_M.data<float>(),
      args.prediction_M && !args.part_M4 ? args.prediction_M.data<std::int32_t>() : nullptr,
      {args.part_M4 ? static_cast<float4*>(args.part_M4.raw()) : nullptr,
       static_cast<int>(args.words.first)});
  tensor::check_cuda(cudaGetLastError(), "compute the losses of words");
}

void combine_vocabulary_parts(const tensor::Stream& stream, const VocabularyParts& args) {
  const std::int64_t M = args.part_PM4.size(1);
  combine_parts<<<static_cast<unsigned>((M + kRowThreads - 1) / kRowThreads), kRowThreads, 0,
                  stream.cuda().handle()>>>(
      static_cast<const float4*>(args.part_PM4.raw()), static_cast<int>(args.part_PM4.size(0)),
      static_cast<int>(M), args.label_M.data<std::int32_t>(), args.lse_M.data<float>(),
      args.loss_M.data<float>(), args.prediction_M ? args.prediction_M.data<std::int32_t>() : nullptr);
  tensor::check_cuda(cudaGetLastError(), "combine the losses of words");
}

void vocabulary_loss_backward(const tensor::Stream& stream, const VocabularyLossBackward& args) {
  const std::int64_t M = args.h_MD.size(0);
  const std::int64_t D = args.h_MD.size(1);
  const std::int64_t V = args.w_VD.size(0);
  const std::int64_t W = args.logits_MW.size(1);
  base::check(W % kLineColumns == 0, "rows of logits must be whole lines of the cache: W={}", W);
  column_gradients<<<static_cast<unsigned>(W / kLineColumns), kLineVectors * kLineRows, 0,
                     stream.cuda().handle()>>>(bfloat16_data(args.logits_MW), M, static_cast<int>(V), W,
                                               args.label_M.data<std::int32_t>(), args.lse_M.data<float>(),
                                               args.scale_1.data<double>(), args.db_V.data<float>(),
                                               static_cast<int>(args.words.first));
  tensor::check_cuda(cudaGetLastError(), "compute the gradients of words");
  Accumulate accumulate_dh = Accumulate::No;
  for (const Words& words : word_parts(V)) {
    const BFloat16* const dlogits = args.logits_MW.data<BFloat16>() + words.begin;
    matmul(stream, {.m = M,
                    .n = D,
                    .k = words.count,
                    .a = {.data = dlogits, .stride = W},
                    .b = {.data = args.w_VD.data<BFloat16>() + words.begin * D, .stride = D},
                    .c = args.dh_MD.raw(),
                    .c_stride = D,
                    .accumulate = accumulate_dh});
    accumulate_dh = Accumulate::Yes;
    matmul(stream, {.m = words.count,
                    .n = D,
                    .k = M,
                    .a = {.data = dlogits, .stride = W, .is_transposed = true},
                    .b = {.data = args.h_MD.data<BFloat16>(), .stride = D},
                    .c = args.dw_VD.data<float>() + words.begin * D,
                    .c_dtype = tensor::DType::Float32,
                    .c_stride = D,
                    .accumulate = args.accumulate});
  }
}

}  // namespace plenum::kernels::cuda
