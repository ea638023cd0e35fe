#pragma once

#include <cstdint>
#include <optional>

namespace plenum::optim {

struct KfacOptions {
  double damping = 0.01;                         ///< relative to the factors: kernels::DampFactors
  std::optional<double> average = std::nullopt;  ///< part that running averages keep; none: the newest alone
  std::int64_t every = 1;                        ///< steps from one refresh to the next

  friend bool operator==(const KfacOptions&, const KfacOptions&) = default;
};

}  // namespace plenum::optim
