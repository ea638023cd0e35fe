#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace plenum::report {

enum class Scale { Linear, Logarithmic };

/// A range of values and where they lie in a chart.
struct Axis {
  double from = 0;
  double to = 1;
  Scale scale = Scale::Linear;

  /// From 0 at `from` to 1 at `to`.
  double place(double value) const;
};

/// The range of values from the least to the greatest, a little wider. On a logarithmic axis both are above
/// 0.
Axis axis_of(double least, double greatest, Scale scale);

struct AxisTick {
  double value = 0;
  std::string label;
};
/// Round values on an axis, at most about `most`; on a logarithmic one powers of ten, or as on a linear one
/// where these are too few.
std::vector<AxisTick> ticks_of(const Axis& axis, std::size_t most);

/// As short as it can be said: "12k", "0.05", "1e-05".
std::string tick_label(double value);

}  // namespace plenum::report
