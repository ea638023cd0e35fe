#include "plenum/train/study_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plenum/base/check.h"

namespace plenum::train {

double mean_of(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double quantile_of(std::span<const double> values, double share) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

double correlation_of(std::span<const double> x, std::span<const double> y) {
  base::check(x.size() == y.size(), "a correlation is of pairs: {} and {}", x.size(), y.size());
  const double mean_x = mean_of(x);
  const double mean_y = mean_of(y);
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

double r_squared(std::span<const double> predicted, std::span<const double> measured) {
  base::check(predicted.size() == measured.size(), "every measurement needs a prediction: {} and {}",
              measured.size(), predicted.size());
  const double mean = mean_of(measured);
  double left = 0;
  double all = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    left += (measured[i] - predicted[i]) * (measured[i] - predicted[i]);
    all += (measured[i] - mean) * (measured[i] - mean);
  }
  return all > 0 ? 1 - left / all : 0;
}

std::optional<double> attainable_r_squared(std::span<const std::vector<double>> runs) {
  std::size_t num_steps = runs.empty() ? 0 : runs.front().size();
  for (const std::vector<double>& run : runs) num_steps = std::min(num_steps, run.size());
  if (runs.size() < 2 || num_steps == 0) return std::nullopt;
  const auto num_runs = static_cast<double>(runs.size());
  std::vector<double> means;
  double noise = 0;  // squares of what a run has beside the mean of all
  for (std::size_t step = 0; step < num_steps; ++step) {
    double mean = 0;
    for (const std::vector<double>& run : runs) mean += run[step] / num_runs;
    for (const std::vector<double>& run : runs) noise += (run[step] - mean) * (run[step] - mean);
    means.push_back(mean);
  }
  // A mean of n runs keeps 1 / n of the variance of one.
  const double of_mean = noise / (num_runs - 1) / num_runs;
  const double middle = mean_of(means);
  double all = 0;
  for (const double mean : means) all += (mean - middle) * (mean - middle);
  if (all == 0) return std::nullopt;
  return 1 - of_mean / all;
}

double variation_of(std::span<const double> values) {
  const double mean = mean_of(values);
  if (mean == 0) return 0;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size())) / mean;
}

double spread_of(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const auto [least, most] = std::ranges::minmax(values);
  return (most - least) / mean_of(values);
}

ErrorSummary summarise_errors(std::span<const double> predicted, std::span<const double> measured) {
  base::check(predicted.size() == measured.size(), "every measurement needs a prediction: {} and {}",
              measured.size(), predicted.size());
  std::vector<double> errors;
  for (std::size_t i = 0; i < measured.size(); ++i)
    errors.push_back(std::abs(predicted[i] / measured[i] - 1));
  if (errors.empty()) return {};
  const auto num_within =
      static_cast<double>(std::ranges::count_if(errors, [](double e) { return e <= 0.05; }));
  return {.count = errors.size(),
          .mean = mean_of(errors),
          .median = quantile_of(errors, 0.5),
          .percentile_95 = quantile_of(errors, 0.95),
          .most = std::ranges::max(errors),
          .share_within_5_percent = num_within / static_cast<double>(errors.size()),
          .correlation = correlation_of(predicted, measured)};
}

std::vector<Regret> regrets_of(std::span<const WorkTime> times) {
  std::vector<Regret> regrets;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto same = [&](const Regret& regret) { return regret.work == times[i].work; };
    const auto found = std::ranges::find_if(regrets, same);
    if (found == regrets.end()) {
      regrets.push_back({.work = times[i].work, .num_ways = 1, .chosen = i, .fastest = i});
      continue;
    }
    ++found->num_ways;
    if (times[i].predicted < times[found->chosen].predicted) found->chosen = i;
    if (times[i].measured < times[found->fastest].measured) found->fastest = i;
  }
  std::erase_if(regrets, [](const Regret& regret) { return regret.num_ways < 2; });
  for (Regret& regret : regrets)
    regret.regret = times[regret.chosen].measured / times[regret.fastest].measured - 1;
  return regrets;
}

}  // namespace plenum::train
