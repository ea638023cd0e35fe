#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::trace {

/// The unit in which a length of time reads well.
struct TimeUnit {
  std::string_view name;
  double seconds = 1;
};
TimeUnit unit_for(double length_seconds);

/// In the unit that suits it, with four digits: "183.4 ms".
std::string format_duration(double seconds);

struct Tick {
  double seconds = 0;
  std::string label;  ///< a number in unit_for(to_seconds)
};

/// The multiples of 1, 2 or 5 times a power of ten in [from, to], as few as to be at most `most_ticks` apart
/// from the first. Both bounds not negative.
std::vector<Tick> round_ticks(double from_seconds, double to_seconds, std::size_t most_ticks);

}  // namespace plenum::trace
