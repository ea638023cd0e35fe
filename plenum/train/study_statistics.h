#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plenum::train {

/// 0 of nothing.
double mean_of(std::span<const double> values);
/// The value below which so much of them lies, between neighbours in proportion; 0.5 is the median. 0 of
/// nothing.
double quantile_of(std::span<const double> values, double share);
/// Of Pearson; 0 where one of the two does not vary.
double correlation_of(std::span<const double> x, std::span<const double> y);
/// How much of the variance of what was measured the prediction, as it is, explains: 1 where they are equal,
/// below 0 where their mean would be nearer. 0 where nothing varies.
double r_squared(std::span<const double> predicted, std::span<const double> measured);
/// R² of the best prediction that there can be of the mean of some runs, step by step: what differs from run
/// to run cannot be predicted. Of one run nothing is known, nor where nothing varies.
std::optional<double> attainable_r_squared(std::span<const std::vector<double>> runs);
/// Standard deviation / mean; 0 of nothing.
double variation_of(std::span<const double> values);
/// (most - least) / mean.
double spread_of(std::span<const double> values);

/// How far predictions are from what was measured, over many of them.
struct ErrorSummary {
  std::size_t count = 0;
  double mean = 0;  ///< of |predicted / measured - 1|, as the next ones
  double median = 0;
  double percentile_95 = 0;
  double most = 0;
  double share_within_5_percent = 0;
  double correlation = 0;
};
ErrorSummary summarise_errors(std::span<const double> predicted, std::span<const double> measured);

/// What came of one way to do a work.
struct WorkTime {
  std::string work;  ///< ways of equal works can be chosen from
  double predicted = 0;
  double measured = 0;
};
/// What choosing the way that was predicted to be the fastest costs.
struct Regret {
  std::string work;
  std::size_t num_ways = 0;
  std::size_t chosen = 0;   ///< index of the way predicted to be the fastest
  std::size_t fastest = 0;  ///< of the one measured to be
  double regret = 0;        ///< by how much the chosen one is slower: 0.03 for 3 %
};
/// Of each work that has two ways or more, in the order in which they come.
std::vector<Regret> regrets_of(std::span<const WorkTime> times);

}  // namespace plenum::train
