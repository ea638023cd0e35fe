#include "plenum/score/correlations.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plenum/base/check.h"

namespace plenum::score {
namespace {

/// Values less their mean, over the greatest distance from it, so that no square is lost.
std::vector<double> centred(std::span<const double> values) {
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  std::vector<double> result;
  double greatest = 0;
  for (const double value : values)
    greatest = std::max(greatest, std::abs(result.emplace_back(value - mean)));
  for (double& value : result) value = greatest == 0 ? 0 : value / greatest;
  return result;
}

bool has_no_number(std::span<const double> values) {
  return std::ranges::any_of(values, [](double value) { return std::isnan(value); });
}

bool are_all_equal(std::span<const double> values) {
  return std::ranges::all_of(values, [&](double value) { return value == values.front(); });
}

}  // namespace

double pearson(std::span<const double> predicted, std::span<const double> expected) {
  base::check(predicted.size() == expected.size() && !expected.empty(),
              "scores need as many predictions as labels, at least one: {} {}", predicted.size(),
              expected.size());
  if (are_all_equal(predicted) || are_all_equal(expected)) return 0;
  const std::vector<double> x = centred(predicted);
  const std::vector<double> y = centred(expected);
  const double products = std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  const double squares = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)) *
                         std::sqrt(std::inner_product(y.begin(), y.end(), y.begin(), 0.0));
  return std::clamp(products / squares, -1.0, 1.0);
}

std::vector<double> ranks_of(std::span<const double> values) {
  base::check(!has_no_number(values), "what is no number has no rank");
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double mean_rank = static_cast<double>(begin + 1 + end) / 2;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = mean_rank;
    begin = end;
  }
  return ranks;
}

double spearman(std::span<const double> predicted, std::span<const double> expected) {
  if (has_no_number(predicted) || has_no_number(expected)) return std::nan("");
  return pearson(ranks_of(predicted), ranks_of(expected));
}

}  // namespace plenum::score
