#include "plenum/packing/coarse_relaxation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "plenum/packing/knapsack.h"
#include "plenum/packing/price_nodes.h"

namespace plenum::packing {

namespace {

/// Prices tend to jump just above capacity / k, for k up to this.
constexpr std::int64_t kMaxDivisor = 8;
/// Between two solutions the number of nodes grows by at most this share.
constexpr double kGrowth = 0.5;
/// A gain below this share of the greatest is left for later.
constexpr double kWorthwhile = 1e-3;
/// So many times in a row splitting by slope may leave the bound as it was.
constexpr int kPatience = 3;

/// The shortest, the longest, those on both sides of every fraction of the capacity, and for the rest about
/// as many sequences, and as many lengths, from each to the next.
std::vector<std::int32_t> first_nodes(const PackingProblem& problem, std::int64_t about) {
  std::vector<std::int32_t> lengths = lengths_that_occur(problem.histogram);
  if (static_cast<std::int64_t>(lengths.size()) <= about) return lengths;
  std::vector<std::int32_t> nodes{lengths.front(), lengths.back()};
  for (std::int64_t divisor = 1; divisor <= kMaxDivisor; ++divisor) {
    const auto above = std::upper_bound(lengths.begin(), lengths.end(), problem.capacity / divisor);
    if (above != lengths.end()) nodes.push_back(*above);
    if (above != lengths.begin()) nodes.push_back(*std::prev(above));
  }
  const double num_sequences = static_cast<double>(problem.histogram.num_sequences());
  const double step = 2 / static_cast<double>(about);
  double share = 0;
  double next = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    share += 0.5 * static_cast<double>(problem.histogram.counts[static_cast<std::size_t>(lengths[i])]) /
                 num_sequences +
             0.5 / static_cast<double>(lengths.size());
    if (2 * share < next) continue;
    nodes.push_back(lengths[i]);
    next += step * 2;
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

/// How many packs the bound could gain at each length at most: what the best pattern around it falls short
/// of a pack, times its count.
std::vector<double> possible_gains(const PackingProblem& problem, const std::vector<double>& duals) {
  const PatternKnapsack<double> knapsack(duals, problem.depth - 1);
  std::vector<double> gains(problem.histogram.counts.size());
  for (std::size_t length = 1; length < gains.size(); ++length) {
    if (problem.histogram.counts[length] == 0) continue;
    const double value = duals[length] + knapsack.best(problem.capacity - static_cast<std::int64_t>(length));
    gains[length] = std::max(0.0, 1 - value) * static_cast<double>(problem.histogram.counts[length]);
  }
  return gains;
}

/// An interval between two nodes and why to split it.
struct Split {
  double gain = 0;
  std::int32_t at = 0;
};

/// Splits intervals where patterns fall short of a pack, so that half of the possible gain is on either side.
std::vector<Split> splits_by_gain(const std::vector<double>& gains, const std::vector<std::int32_t>& nodes) {
  std::vector<Split> splits;
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    const auto begin = gains.begin() + nodes[i] + 1;
    const auto end = gains.begin() + nodes[i + 1];
    const double sum = std::accumulate(begin, end, 0.0);
    if (sum <= 0) continue;
    double below = 0;
    auto middle = begin;
    while (below + *middle < 0.5 * sum) below += *middle++;
    splits.push_back({sum, static_cast<std::int32_t>(middle - gains.begin())});
  }
  return splits;
}

/// Splits intervals beside a change of slope, where it might be better elsewhere, in the middle of their
/// sequences.
std::vector<Split> splits_by_slope(const PackingProblem& problem, const std::vector<double>& duals,
                                   const std::vector<std::int32_t>& nodes) {
  const std::vector<std::uint64_t>& counts = problem.histogram.counts;
  const auto slope = [&](std::size_t i) {
    return (duals[static_cast<std::size_t>(nodes[i + 1])] - duals[static_cast<std::size_t>(nodes[i])]) /
           (nodes[i + 1] - nodes[i]);
  };
  std::vector<Split> splits;
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    const auto begin = counts.begin() + nodes[i] + 1;
    const auto end = counts.begin() + nodes[i + 1];
    const std::uint64_t num_between = std::accumulate(begin, end, std::uint64_t{0});
    if (num_between == 0) continue;
    double bend = 0;
    if (i > 0) bend = std::abs(slope(i) - slope(i - 1));
    if (i + 2 < nodes.size()) bend = std::max(bend, std::abs(slope(i + 1) - slope(i)));
    std::uint64_t below = 0;
    auto middle = begin;
    while (2 * (below + *middle) < num_between) below += *middle++;
    const double gain = bend * (nodes[i + 1] - nodes[i]) * static_cast<double>(num_between);
    if (gain > 0) splits.push_back({gain, static_cast<std::int32_t>(middle - counts.begin())});
  }
  return splits;
}

/// Makes the most promising splits.
void refine(std::vector<Split> splits, std::size_t max_nodes, std::vector<std::int32_t>& nodes) {
  std::sort(splits.begin(), splits.end(), [](const Split& a, const Split& b) {
    return a.gain > b.gain || (a.gain == b.gain && a.at < b.at);
  });
  for (const Split& split : splits) {
    if (nodes.size() >= max_nodes || split.gain < kWorthwhile * splits.front().gain) break;
    nodes.push_back(split.at);
  }
  std::sort(nodes.begin(), nodes.end());
}

}  // namespace

Relaxation relax_coarsely(const PackingProblem& problem, std::vector<std::vector<std::int32_t>> known,
                          const CoarseOptions& options, const Deadline& deadline) {
  RelaxationOptions program{.nodes = first_nodes(problem, options.first_nodes)};
  double bound_before = 0;  // when intervals were last split by slope
  int patience = kPatience;
  while (true) {
    Relaxation relaxation = relax(problem, known, program, deadline);
    const std::size_t num_nodes = program.nodes.size();
    const std::vector<double> gains = possible_gains(problem, relaxation.duals);
    std::vector<Split> splits = splits_by_gain(gains, program.nodes);
    double gain = 0;
    for (const Split& split : splits) gain += split.gain;
    if (gain < options.tolerance) {
      patience = relaxation.bound - bound_before < options.tolerance ? patience - 1 : kPatience;
      if (patience == 0) return relaxation;
      bound_before = relaxation.bound;
      splits = splits_by_slope(problem, relaxation.duals, program.nodes);
    }
    const auto grown = static_cast<std::int64_t>((1 + kGrowth) * static_cast<double>(num_nodes));
    refine(std::move(splits), static_cast<std::size_t>(std::min(options.max_nodes, grown)), program.nodes);
    if (program.nodes.size() == num_nodes || deadline.passed()) return relaxation;
    known.clear();
    for (const FractionalPattern& pattern : relaxation.patterns) known.push_back(pattern.lengths);
    program.duals = std::move(relaxation.duals);
  }
}

}  // namespace plenum::packing
