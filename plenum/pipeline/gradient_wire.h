#pragma once

#include <optional>

#include "plenum/comm/elements.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::pipeline {

/// Gradients as they travel between ranks in half the bytes: rounded to bfloat16 where they are sent, and as
/// float32 again where they are kept. One bucket at a time.
class GradientWire {
 public:
  /// `wire_B`: BFloat16, room for the largest bucket; empty where gradients travel as they are.
  explicit GradientWire(const tensor::TensorView& wire_B) : wire_B_(wire_B) {}

  bool is_used() const { return static_cast<bool>(wire_B_); }
  /// Rounds a bucket, in the order of a device's queue if one is given. Returns what is to be summed.
  comm::Elements pack(const std::optional<tensor::Stream>& queue, const tensor::TensorView& bucket_B) const;
  /// Overwrites a part of the bucket that was packed, from element `first` on.
  void unpack(const std::optional<tensor::Stream>& queue, std::int64_t first,
              const tensor::TensorView& part) const;

 private:
  tensor::TensorView wire_B_;
};

}  // namespace plenum::pipeline
