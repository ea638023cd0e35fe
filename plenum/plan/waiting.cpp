#include "plenum/plan/waiting.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <queue>
#include <utility>
#include <vector>

#include "plenum/base/check.h"

namespace plenum::plan {
namespace {

/// Calls visit(length, number of sequences) for lengths that occur, in increasing order.
template <typename Visit>
void for_lengths(const packing::LengthHistogram& histogram, Visit visit) {
  for (std::size_t length = 0; length < histogram.counts.size(); ++length) {
    if (histogram.counts[length] > 0)
      visit(static_cast<double>(length), static_cast<double>(histogram.counts[length]));
  }
}

/// The mean of value(z) where z is the maximum of n independent standard normal numbers.
template <typename Value>
double mean_at_maximum(std::size_t n, Value value) {
  constexpr double kEnd = 9;
  constexpr int kNumPoints = 1800;
  constexpr double kStep = 2 * kEnd / kNumPoints;
  const auto count = static_cast<double>(n);
  double sum = 0;
  double weights = 0;
  for (int i = 0; i <= kNumPoints; ++i) {
    const double z = -kEnd + i * kStep;
    // The density n phi(z) Phi(z)^(n - 1); the upper tail keeps its digits.
    const double above = std::erfc(z / std::numbers::sqrt2) / 2;
    const double weight = std::exp(-z * z / 2 + (n == 1 ? 0 : (count - 1) * std::log1p(-above)));
    weights += weight;
    sum += weight * value(z);
  }
  return sum / weights;
}

/// The expected cost of the longest of so many sequences that are drawn.
double expected_dearest(const packing::LengthHistogram& histogram, const LengthCost& cost, double num_drawn) {
  const auto total = static_cast<double>(histogram.num_sequences());
  double dearest = 0;
  double below = 0;
  for_lengths(histogram, [&](double length, double count) {
    const double before = below / total;
    below += count;
    // The probability that the longest has this length.
    dearest += cost.at(length) * (std::pow(below / total, num_drawn) - std::pow(before, num_drawn));
  });
  return dearest;
}

/// So many sequences as the histogram has them: one in the middle of each part of equal size, the dearest
/// first.
std::vector<double> typical_costs(const packing::LengthHistogram& histogram, const LengthCost& cost,
                                  std::size_t count) {
  const double share = static_cast<double>(histogram.num_sequences()) / static_cast<double>(count);
  std::vector<double> costs;
  double below = 0;
  for_lengths(histogram, [&](double length, double of_length) {
    below += of_length;
    while (costs.size() < count && (static_cast<double>(costs.size()) + 0.5) * share < below)
      costs.push_back(cost.at(length));
  });
  costs.resize(count, costs.back());
  std::ranges::sort(costs, std::greater());
  return costs;
}

/// What the rank with the most gets where typical sequences go, from the dearest to the cheapest, to the rank
/// that has the least so far and not yet its number of them.
double most_of_division(const packing::LengthHistogram& histogram, const LengthCost& cost,
                        std::size_t sequences_per_rank, std::size_t num_ranks) {
  using Share = std::pair<double, std::size_t>;  // a rank's cost and number so far
  std::vector<Share> none(num_ranks);
  std::priority_queue<Share, std::vector<Share>, std::greater<>> open({}, std::move(none));
  double most = 0;
  for (const double item : typical_costs(histogram, cost, sequences_per_rank * num_ranks)) {
    auto [sum, number] = open.top();
    open.pop();
    sum += item;
    most = std::max(most, sum);
    if (++number < sequences_per_rank) open.emplace(sum, number);
  }
  return most;
}

}  // namespace

CostMoments cost_moments(const packing::LengthHistogram& histogram, const LengthCost& cost) {
  const auto total = static_cast<double>(histogram.num_sequences());
  base::check(total > 0, "moments are of at least one sequence");
  CostMoments moments{.least = std::numeric_limits<double>::infinity()};
  for_lengths(histogram, [&](double length, double count) {
    moments.mean += count / total * cost.at(length);
    moments.least = std::min(moments.least, cost.at(length));
    moments.most = std::max(moments.most, cost.at(length));
  });
  double third = 0;
  double fourth = 0;
  for_lengths(histogram, [&](double length, double count) {
    const double difference = cost.at(length) - moments.mean;
    const double square = difference * difference;
    moments.variance += count / total * square;
    third += count / total * square * difference;
    fourth += count / total * square * square;
  });
  if (moments.variance <= 0) return moments;
  moments.skewness = third / std::pow(moments.variance, 1.5);
  moments.kurtosis = fourth / (moments.variance * moments.variance) - 3;
  return moments;
}

double expected_normal_maximum(std::size_t n) {
  return mean_at_maximum(n, [](double z) { return z; });
}

RankCosts expected_rank_costs(const packing::LengthHistogram& histogram, const LengthCost& cost,
                              std::size_t sequences_per_rank, std::size_t num_ranks, Division division) {
  base::check(sequences_per_rank > 0 && num_ranks > 0, "there must be sequences and ranks: {} and {}",
              sequences_per_rank, num_ranks);
  const CostMoments one = cost_moments(histogram, cost);
  const auto count = static_cast<double>(sequences_per_rank);
  RankCosts costs{.mean = count * one.mean, .expected_most = count * one.mean};
  if (num_ranks == 1) return costs;
  if (sequences_per_rank == 1) {
    costs.expected_most = expected_dearest(histogram, cost, static_cast<double>(num_ranks));
    return costs;
  }
  if (division == Division::Evenly) {
    // With so many of them exchanges reach the mean; of fewer the ranks of a sample tell.
    constexpr std::size_t kEnough = 6;
    constexpr std::size_t kSample = 512;
    if (sequences_per_rank < kEnough) {
      costs.expected_most = std::max(
          costs.mean, most_of_division(histogram, cost, sequences_per_rank, std::min(num_ranks, kSample)));
    }
    return costs;
  }
  const double deviation = std::sqrt(count * one.variance);
  const double skewness = one.skewness / std::sqrt(count);
  const double kurtosis = one.kurtosis / count;
  costs.expected_most = mean_at_maximum(num_ranks, [&](double z) {
    const double corrected = z + (z * z - 1) * skewness / 6 + (z * z - 3) * z * kurtosis / 24 -
                             (2 * z * z - 5) * z * skewness * skewness / 36;
    return std::clamp(costs.mean + deviation * corrected, count * one.least, count * one.most);
  });
  return costs;
}

}  // namespace plenum::plan
