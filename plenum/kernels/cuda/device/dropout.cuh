#pragma once

#include <cstdint>

#include "plenum/kernels/dropout.h"

namespace plenum::kernels::cuda {

/// Channels that share one call of the random function, a byte each.
inline constexpr int kDropoutGroup = 16;

/// kernels::Dropout as kernels take it.
struct DeviceDropout {
  std::uint32_t threshold;
  float scale;
  base::PhiloxRoundKeys keys;
  std::uint32_t layer_and_site;

  explicit DeviceDropout(const Dropout& dropout)
      : threshold(dropout.threshold),
        scale(dropout.scale()),
        keys(base::philox_round_keys(dropout.key)),
        layer_and_site(dropout.layer_and_site()) {}

  __device__ bool is_on() const { return threshold > 0; }

  /// The bytes of channels 16 * group ... 16 * group + 15: byte c % 4 of word c / 4 for channel c.
  __device__ base::PhiloxCounter draw(std::uint64_t sample, std::uint32_t position,
                                      std::uint32_t group) const {
    return base::philox_by_round_keys(
        {static_cast<std::uint32_t>(sample),
         static_cast<std::uint32_t>(sample >> 32) | (layer_and_site << 16), position, group},
        keys);
  }

  /// Whether the channel of byte `byte` of a drawn word is dropped.
  __device__ bool drops(std::uint32_t word, int byte) const {
    // What lies below the byte cannot change which of the two is greater.
    return (word << (24 - 8 * byte)) < (threshold << 24);
  }

  /// A value of that channel behind dropout.
  __device__ float apply(float value, std::uint32_t word, int byte) const {
    return drops(word, byte) ? 0.0F : scale * value;
  }
  /// The same, added to `sum`.
  __device__ float apply_and_add(float value, std::uint32_t word, int byte, float sum) const {
    return drops(word, byte) ? sum : fmaf(scale, value, sum);
  }
};

}  // namespace plenum::kernels::cuda
