#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plenum/calibrate/machine.h"
#include "plenum/comm/communicator.h"

namespace plenum::calibrate {

struct LinkTimerOptions {
  std::vector<std::size_t> sizes = {std::size_t{1} << 10, std::size_t{1} << 13, std::size_t{1} << 16,
                                    std::size_t{1} << 18, std::size_t{1} << 20, std::size_t{1} << 22,
                                    std::size_t{1} << 24};  ///< bytes of the whole; multiples of 8
  double seconds = 0.02;                                    ///< about so long for each operation and size
};

/// A line through measured times, offset + slope x, neither below 0, with the least sum of squares of
/// relative distances: a short time counts as much as a long one.
struct Line {
  double offset = 0;
  double slope = 0;
  double error = 0;  ///< mean relative distance
};
/// Of two points at least, with times above 0.
Line fit_line(std::span<const double> x, std::span<const double> seconds);

/// Measures all operations between the members of a communicator of two or more, of any engine that works in
/// the host's memory. All members call it with the same options and get the same result. Messages go
/// between neighbours, all pairs at once.
std::vector<MeasuredLink> measure_link(comm::Communicator& communicator,
                                       const LinkTimerOptions& options = {});

/// The same between ranks that are threads of this process (comm/local).
std::vector<MeasuredLink> measure_local_link(std::size_t num_ranks, const LinkTimerOptions& options = {});

}  // namespace plenum::calibrate
