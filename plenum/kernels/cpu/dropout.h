#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/kernels/dropout.h"
#include "plenum/workspace/rows.h"

namespace plenum::kernels::cpu {

using workspace::kDropoutGroup;

/// Decisions of one sample: `num_positions` rows of `num_groups` groups of 16 channels.
struct DropoutBox {
  std::uint64_t sample = 0;
  std::uint32_t first_position = 0;
  std::uint32_t num_positions = 1;
  std::uint32_t first_group = 0;
  std::uint32_t num_groups = 0;
};

/// Writes the random bytes of a box, row by row without gaps; a channel is dropped where its byte is below
/// the threshold. Overwrites up to workspace::dropout_buffer_bytes(num_positions * num_groups).
void draw_dropout_bytes(const Dropout& dropout, const DropoutBox& box, std::uint8_t* bytes);

/// Computes y[i] = bytes[i] < threshold ? 0 : scale x[i]. y may be x.
inline void apply_dropout(const std::uint8_t* bytes, std::uint32_t threshold, float scale, const float* x,
                          float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = bytes[i] < threshold ? 0.0F : scale * x[i];
}

/// Computes z[i] = residual[i] + (bytes[i] < threshold ? 0 : scale x[i]). z may be x or residual.
inline void add_dropout(const std::uint8_t* bytes, std::uint32_t threshold, float scale, const float* x,
                        const float* residual, float* z, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    z[i] = residual[i] + (bytes[i] < threshold ? 0.0F : scale * x[i]);
  }
}

}  // namespace plenum::kernels::cpu
