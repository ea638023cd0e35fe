#include "plenum/packing/price_nodes.h"

#include <algorithm>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/packing/length_runs.h"

namespace plenum::packing {

PriceNodes::PriceNodes(const PackingProblem& problem, std::vector<std::int32_t> nodes)
    : nodes_(std::move(nodes)),
      node_below_(static_cast<std::size_t>(problem.capacity) + 1, -1),
      is_linear_(nodes_.size()),
      demand_(nodes_.size()) {
  const std::vector<std::uint64_t>& counts = problem.histogram.counts;
  base::check(!nodes_.empty() && nodes_.back() == problem.histogram.longest(),
              "the longest sequence must be a node: longest={}", problem.histogram.longest());
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    const auto begin = static_cast<std::size_t>(nodes_[index]);
    const bool last = index + 1 == nodes_.size();
    const std::size_t end = last ? node_below_.size() : static_cast<std::size_t>(nodes_[index + 1]);
    for (std::size_t length = begin; length < end; ++length) {
      node_below_[length] = static_cast<std::int32_t>(index);
      if (length > begin && length < counts.size() && counts[length] > 0) is_linear_[index] = 1;
    }
    usable_.push_back(nodes_[index]);
    demand_[index] += static_cast<double>(counts[begin]);
    for (std::size_t length = begin + 1; is_linear_[index] && length < end; ++length) {
      usable_.push_back(static_cast<std::int32_t>(length));
      const double upper = way(static_cast<std::int32_t>(length));
      demand_[index] += static_cast<double>(counts[length]) * (1 - upper);
      demand_[index + 1] += static_cast<double>(counts[length]) * upper;
    }
  }
}

double PriceNodes::way(std::int32_t length) const {
  const auto below = static_cast<std::size_t>(node_below(length));
  if (!is_linear_[below]) return 0;
  return static_cast<double>(length - nodes_[below]) / static_cast<double>(nodes_[below + 1] - nodes_[below]);
}

void PriceNodes::spread(std::span<const std::int32_t> pattern, std::vector<SparseEntry>& column) const {
  column.clear();
  const auto add = [&](std::int32_t index, double value) {
    if (!column.empty() && column.back().index == index) {
      column.back().value += value;
    } else {
      column.push_back({index, value});
    }
  };
  // Descending, so that the upper node of one length is never below what is already there but by one.
  for_each_run(pattern, [&](std::size_t length, std::uint64_t copies) {
    const std::int32_t below = node_below(static_cast<std::int32_t>(length));
    if (below < 0) return;
    const double upper = way(static_cast<std::int32_t>(length));
    const auto number = static_cast<double>(copies);
    if (upper > 0) {
      const bool both_there = column.size() >= 2 && column[column.size() - 2].index == below + 1;
      if (both_there) {
        column[column.size() - 2].value += number * upper;
      } else {
        add(below + 1, number * upper);
      }
    }
    add(below, number * (1 - upper));
  });
}

std::vector<double> PriceNodes::interpolate(std::span<const double> node_prices) const {
  std::vector<double> prices(node_below_.size());
  for (const std::int32_t length : usable_) {
    const auto below = static_cast<std::size_t>(node_below(length));
    const double upper = way(length);
    double& price = prices[static_cast<std::size_t>(length)];
    price = node_prices[below];
    if (upper > 0) price += upper * (node_prices[below + 1] - node_prices[below]);
  }
  return prices;
}

std::vector<std::int32_t> lengths_that_occur(const LengthHistogram& histogram) {
  std::vector<std::int32_t> lengths;
  for (std::size_t length = 1; length < histogram.counts.size(); ++length) {
    if (histogram.counts[length] > 0) lengths.push_back(static_cast<std::int32_t>(length));
  }
  return lengths;
}

}  // namespace plenum::packing
