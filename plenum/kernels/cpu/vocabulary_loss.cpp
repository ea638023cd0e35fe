#include "plenum/kernels/cpu/vocabulary_loss.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/gemm.h"
#include "plenum/kernels/cpu/vector.h"

// M masked positions, D width, V words, N tiles of the vocabulary.

namespace plenum::kernels::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Positions that are worked on at a time.
constexpr std::int64_t kRows = 512;
/// Positions whose tiles a task combines.
constexpr std::int64_t kCombinedRows = 64;

/// Part of the rows or columns of the logits.
struct Range {
  std::int64_t begin;
  std::int64_t end;

  std::int64_t count() const { return end - begin; }
  bool contains(std::int64_t index) const { return index >= begin && index < end; }
};

std::int64_t num_ranges(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

Range range_at(std::int64_t index, std::int64_t size, std::int64_t count) {
  return {index * size, std::min((index + 1) * size, count)};
}

/// The first `lanes` floats, and minus infinity behind them, whose exponential is 0.
template <typename Lanes>
Vec load_logits(const float* from, Lanes lanes) {
  Vec value = broadcast(-kInfinity);
  std::memcpy(&value, from, lanes * sizeof(float));
  return value;
}

/// What a tile knows of a row.
struct TileSum {
  float maximum;
  float sum;  ///< of the exponentials of the differences to the maximum
};

/// What a slice of the vocabulary knows of a row, as it is exchanged.
constexpr std::int64_t kPart = 4;
struct SlicePart {
  float maximum;
  float sum;  ///< of the exponentials of the differences to the maximum
  float label_logit;
  float greatest;  ///< word of the maximum, which a float holds exactly
};

void store_part(const SlicePart& part, float* to) {
  std::memcpy(to, &part, sizeof part);
}

SlicePart load_part(const float* from) {
  SlicePart part;
  std::memcpy(&part, from, sizeof part);
  return part;
}
static_assert(sizeof(SlicePart) == kPart * sizeof(float));

// A logit that is not a number does not become the maximum, but the sum.
TileSum sum_tile(const float* logits, std::int64_t count) {
  Vec greatest = broadcast(-kInfinity);
  for_vectors(0, count,
              [&](std::int64_t i, auto lanes) { greatest = max(load_logits(logits + i, lanes), greatest); });
  const float maximum = max_lane(greatest);
  Vec sums = {};
  for_vectors(0, count,
              [&](std::int64_t i, auto lanes) { sums += exp(load_logits(logits + i, lanes) - maximum); });
  return {maximum, sum(sums)};
}

/// Makes the logits of some rows and words, and leaves what the tile knows of each row.
void forward_tile(const VocabularyLossForward& args, std::int64_t tile, Range rows,
                  std::span<std::byte> scratch) {
  const std::int64_t V = args.w_VD.size(0);
  const std::int64_t D = args.w_VD.size(1);
  const std::int64_t N = args.tiles_MN2.size(1);
  const Range words = range_at(tile, kVocabularyTile, V);
  float* const logits = args.logits_MW.data<float>() + words.begin;
  gemm({.m = rows.count(),
        .n = words.count(),
        .k = D,
        .a = {.data = args.h_MD.data<float>() + rows.begin * D, .stride = D},
        .b = {.data = args.w_VD.data<float>() + words.begin * D, .stride = D, .is_transposed = true},
        .c = logits + rows.begin * V,
        .c_stride = V,
        .epilogue = {.bias = args.b_V.data<float>() + words.begin}},
       scratch);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const TileSum result = sum_tile(logits + row * V, words.count());
    float* const place = args.tiles_MN2.data<float>() + (row * N + tile) * 2;
    place[0] = result.maximum;
    place[1] = result.sum;
  }
}

/// Combines what the tiles know of a row, in their order.
void finish_row(const VocabularyLossForward& args, std::int64_t row) {
  const std::int64_t V = args.w_VD.size(0);
  const std::int64_t N = args.tiles_MN2.size(1);
  const float* const tiles_N2 = args.tiles_MN2.data<float>() + row * N * 2;
  std::int64_t best = 0;
  for (std::int64_t tile = 1; tile < N; ++tile) {
    if (tiles_N2[2 * tile] > tiles_N2[2 * best]) best = tile;
  }
  const double maximum = tiles_N2[2 * best];
  double sum = 0;
  for (std::int64_t tile = 0; tile < N; ++tile) {
    sum += double{tiles_N2[2 * tile + 1]} * std::exp(double{tiles_N2[2 * tile]} - maximum);
  }
  const float* const logits = args.logits_MW.data<float>() + row * V;
  const std::int32_t label = args.label_M.data<std::int32_t>()[row];
  const auto greatest = [&] {
    const Range words = range_at(best, kVocabularyTile, V);
    return std::max_element(logits + words.begin, logits + words.end) - logits;
  };
  if (args.part_M4) {
    const std::int64_t here = label - args.words.first;
    const float logit = label >= 0 && Range{0, V}.contains(here) ? logits[here] : 0.0F;
    store_part({static_cast<float>(maximum), static_cast<float>(sum), logit,
                static_cast<float>(args.words.first + greatest())},
               args.part_M4.data<float>() + row * kPart);
    return;
  }
  const double lse = maximum + std::log(sum);
  args.lse_M.data<float>()[row] = static_cast<float>(lse);
  args.loss_M.data<float>()[row] = label < 0 ? 0.0F : static_cast<float>(lse - double{logits[label]});
  if (args.prediction_M) args.prediction_M.data<std::int32_t>()[row] = static_cast<std::int32_t>(greatest());
}

/// The same of what slices know.
void combine_row(const VocabularyParts& args, std::int64_t row) {
  const std::int64_t P = args.part_PM4.size(0);
  const std::int64_t M = args.part_PM4.size(1);
  const auto part_at = [&](std::int64_t slice) {
    return load_part(args.part_PM4.data<float>() + (slice * M + row) * kPart);
  };
  SlicePart best = part_at(0);
  for (std::int64_t slice = 1; slice < P; ++slice) {
    if (const SlicePart part = part_at(slice); part.maximum > best.maximum) best = part;
  }
  double sum = 0;
  double logit = 0;
  for (std::int64_t slice = 0; slice < P; ++slice) {
    const SlicePart part = part_at(slice);
    sum += double{part.sum} * std::exp(double{part.maximum} - double{best.maximum});
    logit += part.label_logit;
  }
  const double lse = best.maximum + std::log(sum);
  const std::int32_t label = args.label_M.data<std::int32_t>()[row];
  args.lse_M.data<float>()[row] = static_cast<float>(lse);
  args.loss_M.data<float>()[row] = label < 0 ? 0.0F : static_cast<float>(lse - logit);
  if (args.prediction_M)
    args.prediction_M.data<std::int32_t>()[row] = static_cast<std::int32_t>(best.greatest);
}

/// Replaces the logits of a row's tile by scale * softmax, and adds that to the gradient of the bias.
void differentiate_softmax(float* logits, std::int64_t count, float lse, float scale, float* db) {
  for_vectors(0, count, [&](std::int64_t i, auto lanes) {
    const Vec gradient = exp(load_first(logits + i, lanes) - lse) * scale;
    store_first(logits + i, gradient, lanes);
    store_first(db + i, load_first(db + i, lanes) + gradient, lanes);
  });
}

/// Makes the gradients of the logits of some rows and words, and adds theirs to the words' weights.
void backward_tile(const VocabularyLossBackward& args, Range words, Range rows,
                   std::span<std::byte> scratch) {
  const std::int64_t V = args.w_VD.size(0);
  const std::int64_t D = args.w_VD.size(1);
  float* const logits_MV = args.logits_MW.data<float>();
  float* const db_V = args.db_V.data<float>();
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    float* const logits = logits_MV + row * V;
    const std::int32_t label = args.label_M.data<std::int32_t>()[row];
    const auto scale = label < 0 ? 0.0F : static_cast<float>(*args.scale_1.data<double>());
    differentiate_softmax(logits + words.begin, words.count(), args.lse_M.data<float>()[row], scale,
                          db_V + words.begin);
    if (const std::int64_t here = label - args.words.first; words.contains(here)) {
      logits[here] -= scale;
      db_V[here] -= scale;
    }
  }
  gemm({.m = words.count(),
        .n = D,
        .k = rows.count(),
        .a = {.data = logits_MV + rows.begin * V + words.begin, .stride = V, .is_transposed = true},
        .b = {.data = args.h_MD.data<float>() + rows.begin * D, .stride = D},
        .c = args.dw_VD.data<float>() + words.begin * D,
        .c_stride = D,
        .accumulate = rows.begin == 0 ? args.accumulate : Accumulate::Yes},
       scratch);
}

}  // namespace

void vocabulary_loss_forward(const tensor::Stream& stream, const VocabularyLossForward& args) {
  const std::int64_t M = args.h_MD.size(0);
  const std::int64_t N = args.tiles_MN2.size(1);
  const std::int64_t row_ranges = num_ranges(M, kRows);
  stream.pool().run(static_cast<std::size_t>(N * row_ranges), [&](std::size_t task, std::size_t thread) {
    const auto index = static_cast<std::int64_t>(task);
    forward_tile(args, index / row_ranges, range_at(index % row_ranges, kRows, M), stream.scratch(thread));
  });
  stream.pool().run(static_cast<std::size_t>(num_ranges(M, kCombinedRows)),
                    [&](std::size_t task, std::size_t) {
                      const Range rows = range_at(static_cast<std::int64_t>(task), kCombinedRows, M);
                      for (std::int64_t row = rows.begin; row < rows.end; ++row) finish_row(args, row);
                    });
}

void combine_vocabulary_parts(const tensor::Stream& stream, const VocabularyParts& args) {
  const std::int64_t M = args.part_PM4.size(1);
  stream.pool().run(static_cast<std::size_t>(num_ranges(M, kCombinedRows)),
                    [&](std::size_t task, std::size_t) {
                      const Range rows = range_at(static_cast<std::int64_t>(task), kCombinedRows, M);
                      for (std::int64_t row = rows.begin; row < rows.end; ++row) combine_row(args, row);
                    });
}

void vocabulary_loss_backward(const tensor::Stream& stream, const VocabularyLossBackward& args) {
  const std::int64_t M = args.h_MD.size(0);
  const std::int64_t V = args.w_VD.size(0);
  const std::int64_t D = args.w_VD.size(1);
  stream.pool().run(static_cast<std::size_t>(num_ranges(V, kVocabularyTile)),
                    [&](std::size_t tile, std::size_t thread) {
                      const Range words = range_at(static_cast<std::int64_t>(tile), kVocabularyTile, V);
                      for (std::int64_t i = 0; i < num_ranges(M, kRows); ++i) {
                        backward_tile(args, words, range_at(i, kRows, M), stream.scratch(thread));
                      }
                    });
  parallel_gemm(stream, {.m = M,
                         .n = D,
                         .k = V,
                         .a = {.data = args.logits_MW.data<float>(), .stride = V},
                         .b = {.data = args.w_VD.data<float>(), .stride = D},
                         .c = args.dh_MD.data<float>(),
                         .c_stride = D});
}

}  // namespace plenum::kernels::cpu
