#pragma once

#include <cstdint>

#include "plenum/kernels/cpu/dropout.h"
#include "plenum/tensor/stream.h"

namespace plenum::kernels::cpu {

/// Dropout of whole rows of activations. Calls take a buffer of buffer_bytes(width), one for each thread.
class RowDropout {
 public:
  RowDropout(const Dropout& dropout, const RowIdentities& rows, std::int64_t width)
      : dropout_(dropout), width_(width) {
    if (!dropout.is_on()) return;
    samples_ = rows.sample_T.data<std::int64_t>();
    positions_ = rows.position_T.data<std::int32_t>();
  }

  static constexpr std::size_t buffer_bytes(std::int64_t width) {
    return workspace::row_dropout_bytes(width);
  }

  /// A buffer at the beginning of a thread's scratch memory.
  static std::uint8_t* buffer(const tensor::Stream& stream, std::size_t thread) {
    return reinterpret_cast<std::uint8_t*>(stream.scratch(thread).data());
  }

  bool is_on() const { return dropout_.is_on(); }

  /// Computes y = dropout(x) for a row. y may be x.
  void apply(std::int64_t row, const float* x, float* y, std::uint8_t* buffer) const {
    draw(row, buffer);
    apply_dropout(buffer, dropout_.threshold, dropout_.scale(), x, y, width_);
  }

  /// Computes z = residual + dropout(x) for a row. z may be x or residual.
  void apply_and_add(std::int64_t row, const float* x, const float* residual, float* z,
                     std::uint8_t* buffer) const {
    draw(row, buffer);
    add_dropout(buffer, dropout_.threshold, dropout_.scale(), x, residual, z, width_);
  }

 private:
  static constexpr std::int64_t num_groups(std::int64_t width) {
    return (width + kDropoutGroup - 1) / kDropoutGroup;
  }

  void draw(std::int64_t row, std::uint8_t* buffer) const {
    draw_dropout_bytes(dropout_,
                       {.sample = static_cast<std::uint64_t>(samples_[row]),
                        .first_position = static_cast<std::uint32_t>(positions_[row]),
                        .num_groups = static_cast<std::uint32_t>(num_groups(width_))},
                       buffer);
  }

  const Dropout& dropout_;
  std::int64_t width_;
  const std::int64_t* samples_ = nullptr;
  const std::int32_t* positions_ = nullptr;
};

}  // namespace plenum::kernels::cpu
