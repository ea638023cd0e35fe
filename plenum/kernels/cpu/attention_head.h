#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "plenum/batch/sequence_offsets.h"
#include "plenum/kernels/cpu/attention_scratch.h"
#include "plenum/kernels/cpu/dropout.h"
#include "plenum/kernels/cpu/gemm.h"
#include "plenum/tensor/shape.h"

namespace plenum::kernels::cpu {

/// Where one head of one sequence lies in tensors [T, 3, H, K] and [T, H, K]; pointers are to its first row.
struct AttentionHead {
  std::int64_t start = 0;
  std::int64_t length = 0;
  std::int64_t head = 0;
  std::int64_t width = 0;           ///< K
  std::int64_t qkv_stride = 0;      ///< between rows of queries, keys or values
  std::int64_t context_stride = 0;  ///< between rows of the context

  AttentionHead(const tensor::Shape& qkv_T3HK, const batch::SequenceOffsets& sequences, std::size_t sequence,
                std::int64_t head_index)
      : start(sequences.starts[sequence]),
        length(sequences.lengths[sequence]),
        head(head_index),
        width(qkv_T3HK[3]),
        qkv_stride(3 * qkv_T3HK[2] * qkv_T3HK[3]),
        context_stride(qkv_T3HK[2] * qkv_T3HK[3]) {}

  template <typename Float>
  Float* query(Float* qkv) const {
    return qkv + start * qkv_stride + head * width;
  }
  template <typename Float>
  Float* key(Float* qkv) const {
    return query(qkv) + context_stride;
  }
  template <typename Float>
  Float* value(Float* qkv) const {
    return key(qkv) + context_stride;
  }
  template <typename Float>
  Float* context(Float* context) const {
    return context + start * context_stride + head * width;
  }

  float scale() const { return 1.0F / std::sqrt(static_cast<float>(width)); }
};

/// Computes the scores Q K^T / sqrt K of `rows` queries from `first` on, into the scratch's weights.
inline void compute_scores(const AttentionHead& head, const float* qkv, std::int64_t first, std::int64_t rows,
                           const AttentionScratch& scratch) {
  gemm({.m = rows,
        .n = head.length,
        .k = head.width,
        .a = {.data = head.query(qkv) + first * head.qkv_stride, .stride = head.qkv_stride},
        .b = {.data = head.key(qkv), .stride = head.qkv_stride, .is_transposed = true},
        .c = scratch.weights(),
        .c_stride = scratch.stride(),
        .alpha = head.scale()},
       scratch.gemm());
}

/// Makes a row of scores end with a whole vector, by scores that weigh nothing.
inline void fill_up_row(const AttentionHead& head, float* scores, const AttentionScratch& scratch) {
  std::fill(scores + head.length, scores + scratch.columns(), -std::numeric_limits<float>::infinity());
}

/// Draws the random bytes of the same scores, into the scratch's random bytes.
inline void draw_score_bytes(const AttentionHead& head, const Dropout& dropout, std::int64_t sample,
                             std::int64_t first, std::int64_t rows, const AttentionScratch& scratch) {
  constexpr std::int64_t kGroupsPerHead = (std::int64_t{1} << 20) / kDropoutGroup;
  draw_dropout_bytes(
      dropout,
      {.sample = static_cast<std::uint64_t>(sample),
       .first_position = static_cast<std::uint32_t>(first),
       .num_positions = static_cast<std::uint32_t>(rows),
       .first_group = static_cast<std::uint32_t>((dropout.first_head + head.head) * kGroupsPerHead),
       .num_groups = static_cast<std::uint32_t>(scratch.columns() / kDropoutGroup)},
      scratch.random_bytes());
}

}  // namespace plenum::kernels::cpu
