#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace plenum::data {

/// Divides items into parts, the shares of ranks or the micro-batches of one, so that the sums of their costs
/// are nearly equal and no part gets more than ceil(items / parts) of them: from the dearest item to the
/// cheapest, each goes to the part that has the least so far and room (Graham, 1969: longest processing time
/// first), the first of equals; then the part that has the most exchanges items with others, one for one,
/// until it is within 0.01 % of the mean or no exchange helps. A pure function, so every rank computes the
/// same. Gives the indices of each part's items, increasing; parts without an item are the last.
std::vector<std::vector<std::size_t>> divide_evenly(std::span<const double> costs, std::size_t num_parts);

}  // namespace plenum::data
