#include "plenum/packing/column_generation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "plenum/packing/covering_program.h"
#include "plenum/packing/knapsack.h"
#include "plenum/packing/price_nodes.h"

namespace plenum::packing {

namespace {

/// A pattern must be worth this much more than a pack to be an improvement.
constexpr double kImprovement = 1e-9;
/// Objectives this close above a whole number are taken for it.
constexpr double kWhole = 1e-6;
/// The share of the best duals so far in the prices that new patterns are sought at.
constexpr double kSmoothing = 0.8;

class ColumnGeneration {
 public:
  ColumnGeneration(const PackingProblem& problem, const RelaxationOptions& options)
      : problem_(problem),
        options_(options),
        prices_(problem, options.nodes.empty() ? lengths_that_occur(problem.histogram) : options.nodes),
        available_(problem.histogram.counts),
        duals_(initial_duals()),
        bound_(worth(duals_)),
        program_(prices_.demand(), uniform_patterns()) {}

  /// Makes a pattern known unless it already is.
  void add(std::vector<std::int32_t> pattern) {
    std::sort(pattern.begin(), pattern.end(), std::greater<>());
    if (options_.choice == PatternChoice::Possible) make_possible(pattern);
    if (!seen_.insert(pattern).second) return;
    prices_.spread(pattern, column_);
    program_.add_pattern(column_);
    patterns_.push_back(std::move(pattern));
  }

  void run(const Deadline& deadline) {
    while (true) {
      const bool optimal = program_.minimise(deadline);
      activities_ = program_.activities();
      objective_ = std::accumulate(activities_.begin(), activities_.end(), 0.0);
      if (solved()) return;
      const std::size_t num_known = patterns_.size();
      // Smoothed prices find patterns that last; the program's own have the last word on whether any is left.
      for (const double smoothing : {kSmoothing, 0.0}) generate(smoothing);
      if (!optimal || solved() || deadline.passed() || patterns_.size() == num_known) return;
    }
  }

  Relaxation result() const {
    Relaxation result{.patterns = {},
                      .objective = objective_,
                      .duals = prices_.interpolate(duals_),
                      .nodes = prices_.nodes(),
                      .bound = bound_};
    for (std::size_t i = 0; i < activities_.size(); ++i) {
      if (activities_[i] > 0) result.patterns.push_back({patterns_[i], activities_[i]});
    }
    return result;
  }

 private:
  /// Whether a better objective could not lead to fewer packs.
  bool solved() const {
    return objective_ <= options_.good_enough + kWhole ||
           std::ceil(bound_ - kWhole) >= std::ceil(objective_ - kWhole);
  }

  /// Of all sequences at these prices by node.
  double worth(const std::vector<double>& node_prices) const {
    return std::inner_product(node_prices.begin(), node_prices.end(), prices_.demand().begin(), 0.0);
  }

  /// Known duals, those of the volume bound or of the depth bound, whichever are worth most.
  std::vector<double> initial_duals() const {
    std::vector<double> by_volume;
    std::vector<double> known;
    for (const std::int32_t node : prices_.nodes()) {
      by_volume.push_back(node / static_cast<double>(problem_.capacity));
      known.push_back(options_.duals.empty() ? 0 : options_.duals[static_cast<std::size_t>(node)]);
    }
    const std::vector<double> by_depth(by_volume.size(), 1 / static_cast<double>(problem_.depth));
    return std::max({known, by_volume, by_depth},
                    [&](const auto& a, const auto& b) { return worth(a) < worth(b); });
  }

  /// For every row as many copies of its length as a pack holds, the basis to start from. Makes them known
  /// and returns the numbers of copies.
  std::vector<double> uniform_patterns() {
    std::vector<double> num_copies;
    for (const std::int32_t length : prices_.nodes()) {
      auto copies = static_cast<std::uint64_t>(std::min(problem_.capacity / length, problem_.depth));
      if (options_.choice == PatternChoice::Possible) {
        copies = std::min(copies, available_[static_cast<std::size_t>(length)]);
      }
      patterns_.emplace_back(copies, length);
      seen_.insert(patterns_.back());
      num_copies.push_back(static_cast<double>(copies));
    }
    return num_copies;
  }

  /// Adds the best pattern around a length of every interval between nodes, at prices of `smoothing` parts
  /// the best duals so far and the rest the program's, where it is an improvement at the program's own.
  /// Updates the bound.
  void generate(double smoothing) {
    std::vector<double> current(duals_.size());
    std::vector<double> mixed(duals_.size());
    std::vector<double> items(static_cast<std::size_t>(problem_.capacity) + 1);
    for (std::size_t row = 0; row < duals_.size(); ++row) {
      current[row] = std::max(0.0, program_.duals()[row]);
      mixed[row] = smoothing * duals_[row] + (1 - smoothing) * current[row];
      items[static_cast<std::size_t>(prices_.nodes()[row])] = mixed[row];
    }
    const PatternKnapsack<double> knapsack(items, problem_.depth - 1);
    const std::vector<double> price_of_length = prices_.interpolate(mixed);
    std::vector<std::pair<double, std::int32_t>> by_value;  // of the best pattern around each length
    for (const std::int32_t length : prices_.usable()) {
      by_value.emplace_back(
          price_of_length[static_cast<std::size_t>(length)] + knapsack.best(problem_.capacity - length),
          length);
    }
    std::sort(by_value.begin(), by_value.end(), std::greater<>());
    improve_bound(mixed, std::max(1.0, by_value.front().first));

    std::vector<char> covered(duals_.size());
    for (const auto& [price, length] : by_value) {
      if (covered[static_cast<std::size_t>(prices_.node_below(length))]) continue;
      std::vector<std::int32_t> pattern{length};
      knapsack.append_best(problem_.capacity - length, pattern);
      std::sort(pattern.begin(), pattern.end(), std::greater<>());
      for (const std::int32_t part : pattern) covered[static_cast<std::size_t>(prices_.node_below(part))] = 1;
      prices_.spread(pattern, column_);
      double value = 0;
      for (const SparseEntry& entry : column_) {
        value += entry.value * current[static_cast<std::size_t>(entry.index)];
      }
      if (value > 1 + kImprovement) add(std::move(pattern));
    }
  }

  /// Prices divided by the value of the most valuable pattern are feasible duals (Farley, 1990).
  void improve_bound(const std::vector<double>& node_prices, double most_valuable) {
    const double bound = worth(node_prices) / most_valuable;
    if (bound <= bound_) return;
    bound_ = bound;
    for (std::size_t row = 0; row < duals_.size(); ++row) duals_[row] = node_prices[row] / most_valuable;
  }

  /// Drops what the sequences at hand cannot fill and gives the space to the longest that can.
  void make_possible(std::vector<std::int32_t>& pattern) {
    std::vector<std::int32_t> possible;
    std::int64_t tokens = problem_.capacity;
    const auto take = [&](std::int32_t length) {
      std::uint64_t& available = available_[static_cast<std::size_t>(length)];
      const bool full = static_cast<std::int64_t>(possible.size()) == problem_.depth;
      if (available == 0 || length > tokens || full) return false;
      --available;
      tokens -= length;
      possible.push_back(length);
      return true;
    };
    for (const std::int32_t length : pattern) take(length);
    for (auto length = prices_.nodes().rbegin(); length != prices_.nodes().rend() && tokens > 0; ++length) {
      while (take(*length)) {
      }
    }
    for (const std::int32_t length : possible) ++available_[static_cast<std::size_t>(length)];
    std::sort(possible.begin(), possible.end(), std::greater<>());
    pattern = std::move(possible);
  }

  const PackingProblem& problem_;
  const RelaxationOptions& options_;
  PriceNodes prices_;
  std::vector<std::uint64_t> available_;  ///< sequences by length; changes only within make_possible
  std::vector<double> duals_;             ///< the best so far, by node
  double bound_;                          ///< what they prove
  std::vector<std::vector<std::int32_t>> patterns_;
  std::set<std::vector<std::int32_t>> seen_;
  CoveringProgram program_;
  std::vector<double> activities_;  ///< by pattern; those found since the last solution have none
  double objective_ = 0;
  std::vector<SparseEntry> column_;
};

}  // namespace

Relaxation relax(const PackingProblem& problem, const std::vector<std::vector<std::int32_t>>& known,
                 const RelaxationOptions& options, const Deadline& deadline) {
  ColumnGeneration generation(problem, options);
  for (const std::vector<std::int32_t>& pattern : known) generation.add(pattern);
  generation.run(deadline);
  return generation.result();
}

}  // namespace plenum::packing
