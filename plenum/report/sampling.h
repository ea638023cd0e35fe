#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace plenum::report {

/// The indices of at most `most` values (4 or more) that draw the same curve: of as many stretches as there
/// is room for, the least and the greatest; always the first and the last. In order; values that are not
/// finite are left out.
std::vector<std::size_t> sample_extremes(std::span<const double> values, std::size_t most);

/// The mean of the values around each: of at most `reach` before it and as many after it, as far as there are
/// any. At the beginning, where curves are steep, the window shrinks; at the end it does not. Values that are
/// not finite count for nothing; where all are, the mean is not a number.
std::vector<double> smooth(std::span<const double> values, std::size_t reach);

}  // namespace plenum::report
