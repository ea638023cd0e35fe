#include "plenum/report/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plenum::report {
namespace {

/// What is finite of a window that moves on: its sum and count.
struct FiniteSum {
  double sum = 0;
  std::size_t count = 0;

  void add(double value) {
    if (!std::isfinite(value)) return;
    sum += value;
    ++count;
  }
};

/// A queue of values and their mean. Nothing is subtracted, so that a large value leaves no rounding behind:
/// the older values are a stack with the sums from each to the newest of them, the newer ones wait.
class MovingSum {
 public:
  void push(double value) {
    newer_.push_back(value);
    of_newer_.add(value);
  }

  void pop() {
    if (older_.empty()) {
      FiniteSum sum;
      for (; !newer_.empty(); newer_.pop_back()) {
        sum.add(newer_.back());
        older_.push_back(sum);
      }
      of_newer_ = {};
    }
    older_.pop_back();
  }

  /// Not a number where no value is finite.
  double mean() const {
    const FiniteSum of_older = older_.empty() ? FiniteSum() : older_.back();
    const std::size_t count = of_older.count + of_newer_.count;
    return count > 0 ? (of_older.sum + of_newer_.sum) / static_cast<double>(count)
                     : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  std::vector<FiniteSum> older_;
  std::vector<double> newer_;
  FiniteSum of_newer_;
};

}  // namespace

std::vector<std::size_t> sample_extremes(std::span<const double> values, std::size_t most) {
  std::vector<std::size_t> finite;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) finite.push_back(i);
  if (finite.size() <= most) return finite;
  const auto by_value = [&](std::size_t a, std::size_t b) { return values[a] < values[b]; };
  const std::size_t num_stretches = (most - 2) / 2;
  const std::size_t num_inner = finite.size() - 2;
  std::vector<std::size_t> kept = {finite.front()};
  for (std::size_t k = 0; k < num_stretches; ++k) {
    const auto begin = finite.begin() + 1 + static_cast<std::ptrdiff_t>(num_inner * k / num_stretches);
    const auto end = finite.begin() + 1 + static_cast<std::ptrdiff_t>(num_inner * (k + 1) / num_stretches);
    const auto [least, greatest] = std::minmax_element(begin, end, by_value);
    kept.push_back(std::min(*least, *greatest));
    if (*least != *greatest) kept.push_back(std::max(*least, *greatest));
  }
  kept.push_back(finite.back());
  return kept;
}

std::vector<double> smooth(std::span<const double> values, std::size_t reach) {
  std::vector<double> means(values.size());
  MovingSum window;
  std::size_t begin = 0;
  std::size_t end = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t first = i - std::min(reach, i);
    const std::size_t behind = std::min(i + (i - first) + 1, values.size());
    while (end < behind) window.push(values[end++]);
    for (; begin < first; ++begin) window.pop();
    means[i] = window.mean();
  }
  return means;
}

}  // namespace plenum::report
