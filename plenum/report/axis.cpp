#include "plenum/report/axis.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace plenum::report {
namespace {

/// 1, 2 or 5 times a power of ten, at least `least`.
double round_distance(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::vector<AxisTick> linear_ticks(const Axis& axis, std::size_t most) {
  std::vector<AxisTick> ticks;
  const double distance = round_distance((axis.to - axis.from) / static_cast<double>(most));
  const double first = std::ceil(axis.from / distance - 1e-9);
  for (std::size_t i = 0; i <= 2 * most; ++i) {
    const double tick = (first + static_cast<double>(i)) * distance;
    if (!(tick <= axis.to + 1e-9 * distance)) break;
    ticks.push_back({tick, tick_label(tick)});
  }
  return ticks;
}

std::vector<AxisTick> powers_of_ten(const Axis& axis, std::size_t most) {
  std::vector<AxisTick> ticks;
  const double first = std::ceil(std::log10(axis.from) - 1e-9);
  const double last = std::floor(std::log10(axis.to) + 1e-9);
  const double every = std::max(1.0, std::ceil((last - first + 1) / static_cast<double>(most)));
  for (double power = first; power <= last; power += every)
    ticks.push_back({std::pow(10, power), tick_label(std::pow(10, power))});
  return ticks;
}

}  // namespace

double Axis::place(double value) const {
  const auto of = [this](double x) { return scale == Scale::Logarithmic ? std::log(x) : x; };
  return to > from ? (of(value) - of(from)) / (of(to) - of(from)) : 0;
}

Axis axis_of(double least, double greatest, Scale scale) {
  constexpr double kMargin = 0.04;
  if (scale == Scale::Logarithmic) {
    const double factor = std::max(1.05, std::pow(greatest / least, kMargin));
    return {least / factor, greatest * factor, scale};
  }
  // A difference that rounding alone makes is none.
  const double size = std::max(std::abs(least), std::abs(greatest));
  const double length = greatest - least;
  const double margin = length > 1e-9 * size ? kMargin * length : std::max(size * kMargin, 1e-12);
  // What begins at 0 has nothing below.
  return {least >= 0 && least < margin ? 0 : least - margin, greatest + margin, scale};
}

std::vector<AxisTick> ticks_of(const Axis& axis, std::size_t most) {
  if (axis.scale == Scale::Linear) return linear_ticks(axis, most);
  std::vector<AxisTick> ticks = powers_of_ten(axis, most);
  return ticks.size() >= 2 ? ticks : linear_ticks(axis, most);
}

std::string tick_label(double value) {
  const double size = std::abs(value);
  if (size < 1e-12) return "0";
  if (size < 1e-3) return fmt::format("{:.3g}", value);
  constexpr std::array<std::pair<double, const char*>, 4> kUnits = {
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}}};
  for (const auto& [from, letter] : kUnits)
    if (size >= from) return fmt::format("{:.4g}{}", value / (letter[0] == 'k' ? 1e3 : from), letter);
  return fmt::format("{:.6g}", value);
}

}  // namespace plenum::report
