#pragma once

#include <cstddef>
#include <functional>

#include "plenum/calibrate/argument_room.h"
#include "plenum/plan/op.h"

namespace plenum::calibrate {

/// What of an operation its sizes do not say.
struct OpSetting {
  double hidden_dropout = 0.1;  ///< before norms and behind the embedding
  double attention_dropout = 0.1;
  /// Words of the embedding's table.
  std::int64_t vocabulary = 30522;
};

/// An operation of Plenum's kernels with arguments of its own.
struct BoundOp {
  std::function<void(const tensor::Stream&)> run;
  /// Once, before: makes what it reads. May be empty.
  std::function<void(const tensor::Stream&)> prepare;
};

/// Cuts the arguments out of the room, for an operation that begins with plan::make_op. Sizes are rounded to
/// whole numbers, at least 1. Running it again and again does the same work.
///
/// Attention has heads of 64, or one head where the width is no multiple of that, and sequences of one
/// length. What is copied or filled in rows of one element is a flat buffer. Words of the embedding are as
/// frequent as in text: the nth in proportion to 1 / n.
BoundOp bind_op(const plan::Op& op, const OpSetting& setting, ArgumentRoom& room);

/// Scratch of the stream that it runs on, on the CPU of each thread.
std::size_t op_scratch_bytes(const plan::Op& op, tensor::Device device);

}  // namespace plenum::calibrate
