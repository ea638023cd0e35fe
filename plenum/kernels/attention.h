#pragma once

#include <cstdint>
#include <span>

#include "plenum/batch/sequence_offsets.h"
#include "plenum/kernels/dropout.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/attention.h"

namespace plenum::kernels {

// T rows, H heads of width K; everything has the type of activations but lse_HT, which is Float32.
// Sequences attend to themselves alone: no score between two sequences and none of padding is ever computed.
// See docs/math/attention.md.

/// What the GPU reads of a micro-batch's sequences, in its memory: see attention_work.h.
struct AttentionWork {
  tensor::ConstTensorView counts_2 = {};  ///< Int32: how many of the tiles and gaps there are
  tensor::ConstTensorView tiles_N4 = {};  ///< Int32
  tensor::ConstTensorView gaps_G2 = {};   ///< Int32
  tensor::ConstTensorView sample_S = {};  ///< Int64: identity of each sequence
};

/// For each sequence and head computes P = softmax(Q K^T / sqrt K), O = dropout(P) V.
struct AttentionForward {
  tensor::ConstTensorView qkv_T3HK;  ///< [T, 3, H, K]: queries, keys and values of a row lie together
  batch::SequenceOffsets sequences;
  std::span<const std::int64_t> samples;  ///< identity of each sequence; needed where dropout is on
  AttentionWork work = {};                ///< needed on the GPU
  Dropout dropout;                        ///< of the attention weights
  tensor::TensorView context_THK;         ///< O; overwritten, zero in padding
  tensor::TensorView lse_HT;              ///< log of the softmax's denominator; overwritten, for backward
  /// Byte, attention_keep_bytes() of them at least, from a multiple of 16 bytes on: what dropout keeps, for
  /// backward, or left out. Overwritten on a GPU where dropout is on, else not touched.
  tensor::TensorView keep_bits = {};
};
void attention_forward(const tensor::Stream& stream, const AttentionForward& args);

/// Computes dQ, dK and dV, from weights that are computed again: with forward's sequences, samples and
/// dropout.
struct AttentionBackward {
  tensor::ConstTensorView qkv_T3HK;
  tensor::ConstTensorView context_THK;
  tensor::ConstTensorView lse_HT;
  tensor::ConstTensorView dcontext_THK;
  batch::SequenceOffsets sequences;
  std::span<const std::int64_t> samples;
  AttentionWork work = {};
  Dropout dropout;
  tensor::ConstTensorView keep_bits = {};  ///< as forward has left them; drawn again where left out
  tensor::TensorView dqkv_T3HK;            ///< overwritten, zero in padding
};
void attention_backward(const tensor::Stream& stream, const AttentionBackward& args);

/// Bytes of keep_bits at least, and scratch that either needs, on the CPU each thread.
using workspace::attention_keep_bytes;
using workspace::attention_scratch_bytes;
using workspace::AttentionSize;

}  // namespace plenum::kernels
