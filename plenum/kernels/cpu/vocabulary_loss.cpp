#include "plenum/kernels/cpu/vocabulary_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

// M masked positions, D width, V words, N tiles of the vocabulary.

namespace plenum::kernels::cpu {
namespace {

/// Columns of the logits that one task owns.
struct Tile {
  std::int64_t begin;
  std::int64_t end;
};

Tile tile_at(std::size_t index, std::int64_t vocabulary) {
  const std::int64_t begin = static_cast<std::int64_t>(index) * kVocabularyTile;
  return {begin, std::min(begin + kVocabularyTile, vocabulary)};
}

/// What a tile knows of a row: its greatest logit, and the sum of exponentials of the differences to it.
struct TileSum {
  float maximum;
  float sum;
};

float maximum_of(const float* values, std::int64_t count) {
  float maximum = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < count; ++i) maximum = values[i] > maximum ? values[i] : maximum;
  return maximum;
}

TileSum sum_tile(const float* logits, std::int64_t count) {
  const float maximum = maximum_of(logits, count);
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::exp(logits[i] - maximum);
  return {maximum, sum};
}

struct ForwardPointers {
  explicit ForwardPointers(const VocabularyLossForward& args)
      : masked(args.h_MD.size(0)),
        width(args.h_MD.size(1)),
        vocabulary(args.w_VD.size(0)),
        num_tiles(args.tiles_MN2.size(1)),
        h_MD(args.h_MD.data<float>()),
        w_VD(args.w_VD.data<float>()),
        b_V(args.b_V.data<float>()),
        label_M(args.label_M.data<std::int32_t>()),
        logits_MV(args.logits_MV.data<float>()),
        tiles_MN2(args.tiles_MN2.data<float>()) {}

  std::int64_t masked, width, vocabulary, num_tiles;
  const float *h_MD, *w_VD, *b_V;
  const std::int32_t* label_M;
  float *logits_MV, *tiles_MN2;
};

void forward_tile(const ForwardPointers& p, std::size_t tile_index) {
  const Tile tile = tile_at(tile_index, p.vocabulary);
  for (std::int64_t row = 0; row < p.masked; ++row) {
    float* logits = p.logits_MV + row * p.vocabulary;
    for (std::int64_t word = tile.begin; word < tile.end; ++word) {
      float sum = 0;
      for (std::int64_t i = 0; i < p.width; ++i)
        sum += p.h_MD[row * p.width + i] * p.w_VD[word * p.width + i];
      logits[word] = sum + p.b_V[word];
    }
    const TileSum result = sum_tile(logits + tile.begin, tile.end - tile.begin);
    float* place = p.tiles_MN2 + (row * p.num_tiles + static_cast<std::int64_t>(tile_index)) * 2;
    place[0] = result.maximum;
    place[1] = result.sum;
  }
}

/// Combines what the tiles know of a row, in their order.
void finish_row(const ForwardPointers& p, const VocabularyLossForward& args, std::int64_t row) {
  const float* tiles_N2 = p.tiles_MN2 + row * p.num_tiles * 2;
  std::int64_t best_tile = 0;
  for (std::int64_t tile = 1; tile < p.num_tiles; ++tile) {
    if (tiles_N2[2 * tile] > tiles_N2[2 * best_tile]) best_tile = tile;
  }
  const float maximum = tiles_N2[2 * best_tile];
  double sum = 0;
  for (std::int64_t tile = 0; tile < p.num_tiles; ++tile) {
    sum += double{tiles_N2[2 * tile + 1]} * std::exp(double{tiles_N2[2 * tile]} - double{maximum});
  }
  const double lse = double{maximum} + std::log(sum);
  const float* logits = p.logits_MV + row * p.vocabulary;
  args.lse_M.data<float>()[row] = static_cast<float>(lse);
  args.loss_M.data<float>()[row] = static_cast<float>(lse - double{logits[p.label_M[row]]});
  if (args.prediction_M) {
    const Tile tile = tile_at(static_cast<std::size_t>(best_tile), p.vocabulary);
    const float* greatest = std::max_element(logits + tile.begin, logits + tile.end);
    args.prediction_M.data<std::int32_t>()[row] = static_cast<std::int32_t>(greatest - logits);
  }
}

}  // namespace

void vocabulary_loss_forward(const tensor::Stream& stream, const VocabularyLossForward& args) {
  const ForwardPointers pointers(args);
  stream.pool().run(static_cast<std::size_t>(pointers.num_tiles),
                    [&](std::size_t tile, std::size_t) { forward_tile(pointers, tile); });
  for (std::int64_t row = 0; row < pointers.masked; ++row) finish_row(pointers, args, row);
}

void vocabulary_loss_backward(const tensor::Stream& stream, const VocabularyLossBackward& args) {
  const std::int64_t masked = args.h_MD.size(0);
  const std::int64_t width = args.h_MD.size(1);
  const std::int64_t vocabulary = args.w_VD.size(0);
  const float* h_MD = args.h_MD.data<float>();
  const float* w_VD = args.w_VD.data<float>();
  const float* lse_M = args.lse_M.data<float>();
  const std::int32_t* label_M = args.label_M.data<std::int32_t>();
  float* logits_MV = args.logits_MV.data<float>();
  float* dh_MD = args.dh_MD.data<float>();
  float* dw_VD = args.dw_VD.data<float>();
  float* db_V = args.db_V.data<float>();
  stream.pool().run(static_cast<std::size_t>(vocabulary_tiles(vocabulary)),
                    [&](std::size_t index, std::size_t) {
                      const Tile tile = tile_at(index, vocabulary);
                      for (std::int64_t row = 0; row < masked; ++row) {
                        float* logits = logits_MV + row * vocabulary;
                        for (std::int64_t word = tile.begin; word < tile.end; ++word) {
                          logits[word] = args.scale * std::exp(logits[word] - lse_M[row]);
                        }
                        if (label_M[row] >= tile.begin && label_M[row] < tile.end)
                          logits[label_M[row]] -= args.scale;
                        for (std::int64_t word = tile.begin; word < tile.end; ++word) {
                          db_V[word] += logits[word];
                          for (std::int64_t i = 0; i < width; ++i)
                            dw_VD[word * width + i] += logits[word] * h_MD[row * width + i];
                        }
                      }
                    });
  stream.pool().run(static_cast<std::size_t>(masked), [&](std::size_t index, std::size_t) {
    const auto row = static_cast<std::int64_t>(index);
    float* dh = dh_MD + row * width;
    std::fill(dh, dh + width, 0.0F);
    for (std::int64_t word = 0; word < vocabulary; ++word) {
      for (std::int64_t i = 0; i < width; ++i)
        dh[i] += logits_MV[row * vocabulary + word] * w_VD[word * width + i];
    }
  });
}

std::size_t vocabulary_loss_scratch_bytes() {
  return 0;
}

}  // namespace plenum::kernels::cpu
