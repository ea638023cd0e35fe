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
#include "plenum/packing/length_runs.h"

namespace plenum::packing {

namespace {

/// A pattern must be worth this much more than a pack to be an improvement.
constexpr double kImprovement = 1e-9;
/// Objectives this close above a whole number are taken for it.
constexpr double kWhole = 1e-6;
/// The share of the best duals so far in the prices that new patterns are sought at.
constexpr double kSmoothing = 0.8;

/// The rows of the linear program: the lengths that occur, ascending.
struct Rows {
  explicit Rows(const LengthHistogram& histogram) : row_of_length(histogram.counts.size(), -1) {
    for (std::size_t length = 1; length < histogram.counts.size(); ++length) {
      if (histogram.counts[length] == 0) continue;
      row_of_length[length] = static_cast<std::int32_t>(lengths.size());
      lengths.push_back(static_cast<std::int32_t>(length));
      demand.push_back(static_cast<double>(histogram.counts[length]));
    }
  }

  std::vector<std::int32_t> lengths;
  std::vector<std::int32_t> row_of_length;  ///< -1 if the length does not occur
  std::vector<double> demand;
};

class ColumnGeneration {
 public:
  ColumnGeneration(const PackingProblem& problem, const RelaxationOptions& options)
      : problem_(problem),
        options_(options),
        rows_(problem.histogram),
        available_(problem.histogram.counts),
        duals_(initial_duals()),
        bound_(worth(duals_)),
        program_(rows_.demand, uniform_patterns()) {}

  /// Makes a pattern known unless it already is.
  void add(std::vector<std::int32_t> pattern) {
    std::sort(pattern.begin(), pattern.end(), std::greater<>());
    if (options_.choice == PatternChoice::Possible) make_possible(pattern);
    if (!seen_.insert(pattern).second) return;
    column_.clear();
    for_each_run(pattern, [&](std::size_t length, std::uint64_t copies) {
      column_.push_back({rows_.row_of_length[length], static_cast<double>(copies)});
    });
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
    Relaxation result{.patterns = {}, .objective = objective_, .duals = duals_, .bound = bound_};
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

  double worth(const std::vector<double>& duals) const {
    double sum = 0;
    for (std::size_t row = 0; row < rows_.lengths.size(); ++row) {
      sum += rows_.demand[row] * duals[static_cast<std::size_t>(rows_.lengths[row])];
    }
    return sum;
  }

  /// The duals of the volume bound or of the depth bound, whichever is greater.
  std::vector<double> initial_duals() const {
    std::vector<double> by_volume(static_cast<std::size_t>(problem_.capacity) + 1);
    std::vector<double> by_depth(by_volume.size());
    for (const std::int32_t length : rows_.lengths) {
      by_volume[static_cast<std::size_t>(length)] = length / static_cast<double>(problem_.capacity);
      by_depth[static_cast<std::size_t>(length)] = 1 / static_cast<double>(problem_.depth);
    }
    return worth(by_volume) >= worth(by_depth) ? by_volume : by_depth;
  }

  /// For every row as many copies of its length as a pack holds, the basis to start from. Makes them known
  /// and returns the numbers of copies.
  std::vector<double> uniform_patterns() {
    std::vector<double> num_copies;
    for (const std::int32_t length : rows_.lengths) {
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

  /// Adds the best pattern around every length, at prices of `smoothing` parts the best duals so far and the
  /// rest the program's, where it is an improvement at the program's own. Updates the bound.
  void generate(double smoothing) {
    std::vector<double> current(duals_.size());
    std::vector<double> prices(duals_.size());
    for (std::size_t row = 0; row < rows_.lengths.size(); ++row) {
      const auto length = static_cast<std::size_t>(rows_.lengths[row]);
      current[length] = std::max(0.0, program_.duals()[row]);
      prices[length] = smoothing * duals_[length] + (1 - smoothing) * current[length];
    }
    const PatternKnapsack<double> knapsack(prices, problem_.depth - 1);
    std::vector<std::pair<double, std::int32_t>> by_value;  // of the best pattern around each length
    for (const std::int32_t length : rows_.lengths) {
      by_value.emplace_back(
          prices[static_cast<std::size_t>(length)] + knapsack.best(problem_.capacity - length), length);
    }
    std::sort(by_value.begin(), by_value.end(), std::greater<>());
    improve_bound(prices, std::max(1.0, by_value.front().first));

    std::vector<char> covered(duals_.size());
    for (const auto& [price, length] : by_value) {
      if (covered[static_cast<std::size_t>(length)]) continue;
      std::vector<std::int32_t> pattern{length};
      knapsack.append_best(problem_.capacity - length, pattern);
      double value = 0;
      for (const std::int32_t part : pattern) {
        value += current[static_cast<std::size_t>(part)];
        covered[static_cast<std::size_t>(part)] = 1;
      }
      if (value > 1 + kImprovement) add(std::move(pattern));
    }
  }

  /// Prices divided by the value of the most valuable pattern are feasible duals (Farley, 1990).
  void improve_bound(const std::vector<double>& prices, double most_valuable) {
    const double bound = worth(prices) / most_valuable;
    if (bound <= bound_) return;
    bound_ = bound;
    for (std::size_t length = 0; length < duals_.size(); ++length)
      duals_[length] = prices[length] / most_valuable;
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
    for (auto length = rows_.lengths.rbegin(); length != rows_.lengths.rend() && tokens > 0; ++length) {
      while (take(*length)) {
      }
    }
    for (const std::int32_t length : possible) ++available_[static_cast<std::size_t>(length)];
    std::sort(possible.begin(), possible.end(), std::greater<>());
    pattern = std::move(possible);
  }

  const PackingProblem& problem_;
  const RelaxationOptions& options_;
  Rows rows_;
  std::vector<std::uint64_t> available_;  ///< sequences by length; changes only within make_possible
  std::vector<double> duals_;             ///< the best so far, by length
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
