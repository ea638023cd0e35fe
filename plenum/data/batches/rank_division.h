#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace plenum::data {

/// Divides items among ranks so that the sums of their costs are nearly equal and no rank gets more than
/// ceil(items / ranks) of them: from the dearest item to the cheapest, each goes to the rank that has the
/// least so far and room (Graham, 1969: longest processing time first), the first of equals; then the rank
/// that has the most exchanges items with others, one for one, until it is within 0.01 % of the mean or no
/// exchange helps. A pure function, so every rank computes the same. Gives the indices of each rank's items,
/// increasing.
std::vector<std::vector<std::size_t>> divide_among_ranks(std::span<const double> costs,
                                                         std::size_t num_ranks);

}  // namespace plenum::data
