#include "plenum/trace/time_axis.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace plenum::trace {
namespace {

constexpr double kLeastSeconds = 1e-9;  ///< below, a time is the rounding of others

double round_step(double at_least) {
  const double power = std::pow(10, std::floor(std::log10(at_least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    // A step that is right but for rounding is right.
    if (factor * power >= at_least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

TimeUnit unit_for(double length_seconds) {
  if (length_seconds >= 10) return {"s", 1};
  if (length_seconds >= 1e-3 || length_seconds <= 0) return {"ms", 1e-3};
  return {"µs", 1e-6};
}

std::string format_duration(double seconds) {
  const TimeUnit unit = unit_for(std::abs(seconds));
  const double value = seconds / unit.seconds;
  if (std::abs(seconds) < kLeastSeconds) return "0 ms";
  int num_decimals = 3;
  double scale = 1000;
  while (num_decimals > 0 && std::round(std::abs(value) * scale) >= 10000) {
    --num_decimals;
    scale /= 10;
  }
  return fmt::format("{:.{}f} {}", value, num_decimals, unit.name);
}

std::vector<Tick> round_ticks(double from_seconds, double to_seconds, std::size_t most_ticks) {
  if (!(to_seconds > from_seconds) || most_ticks == 0) return {};
  const TimeUnit unit = unit_for(to_seconds);
  const double step =
      round_step((to_seconds - from_seconds) / unit.seconds / static_cast<double>(most_ticks));
  const int num_decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  // A tick that lies on a bound but for rounding lies inside.
  const double first = std::max(0.0, std::ceil(from_seconds / unit.seconds / step - 1e-9));
  const double last = std::floor(to_seconds / unit.seconds / step + 1e-9);
  std::vector<Tick> ticks;
  for (double index = first; index <= last; ++index) {
    ticks.push_back({index * step * unit.seconds, fmt::format("{:.{}f}", index * step, num_decimals)});
  }
  return ticks;
}

}  // namespace plenum::trace
