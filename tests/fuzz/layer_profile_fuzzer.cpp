#include <cmath>

#include "plenum/schedule/simulate/layer_profile.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plenum::fuzz::parse_or_refuse([&] {
    const auto profile = plenum::schedule::parse_layer_profile(plenum::fuzz::as_text(data, size), "fuzz");
    const auto& rows = profile.rows();
    const std::int64_t middle = (rows.front().batch + rows.back().batch) / 2;
    const plenum::schedule::LayerCosts costs = profile.row(middle);
    if (!std::isfinite(costs.forward_seconds) || costs.factor_bytes < 0) __builtin_trap();
  });
  return 0;
}
