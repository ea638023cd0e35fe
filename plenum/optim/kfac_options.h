#pragma once

#include <cstdint>
#include <optional>

namespace plenum::optim {

struct KfacOptions {
  double damping = 0.01;                         ///< relative to the factors: kernels::DampFactors
  std::optional<double> average = std::nullopt;  ///< part that running averages keep; none: the newest alone
  /// Steps from one refresh to the next; none: in each, unless refreshes are spread over the bubbles of a
  /// pipeline.
  std::optional<std::int64_t> every = std::nullopt;

  friend bool operator==(const KfacOptions&, const KfacOptions&) = default;
};

}  // namespace plenum::optim
