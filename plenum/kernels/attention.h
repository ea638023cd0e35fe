#pragma once

#include <cstdint>
#include <span>

#include "plenum/kernels/dropout.h"
#include "plenum/tensor/sequence_offsets.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

// T rows, H heads of width K; everything Float32. Sequences attend to themselves alone: no score between two
// sequences and none of padding is ever computed. See docs/math/attention.md.

/// For each sequence and head computes P = softmax(Q K^T / sqrt K), O = dropout(P) V.
struct AttentionForward {
  tensor::ConstTensorView qkv_T3HK;  ///< [T, 3, H, K]: queries, keys and values of a row lie together
  tensor::SequenceOffsets sequences;
  std::span<const std::int64_t> samples;  ///< identity of each sequence; needed where dropout is on
  Dropout dropout;                        ///< of the attention weights
  tensor::TensorView context_THK;         ///< O; overwritten, zero in padding
  tensor::TensorView lse_HT;              ///< log of the softmax's denominator; overwritten, for backward
};
void attention_forward(const tensor::Stream& stream, const AttentionForward& args);

/// Computes dQ, dK and dV, from weights that are computed again.
struct AttentionBackward {
  tensor::ConstTensorView qkv_T3HK;
  tensor::ConstTensorView context_THK;
  tensor::ConstTensorView lse_HT;
  tensor::ConstTensorView dcontext_THK;
  tensor::SequenceOffsets sequences;
  std::span<const std::int64_t> samples;
  Dropout dropout;
  tensor::TensorView dqkv_T3HK;  ///< overwritten, zero in padding
};
void attention_backward(const tensor::Stream& stream, const AttentionBackward& args);

/// Scratch that each thread needs for either, of sequences of at most this length.
std::size_t attention_scratch_bytes(std::int64_t max_length, std::int64_t head_width);

}  // namespace plenum::kernels
