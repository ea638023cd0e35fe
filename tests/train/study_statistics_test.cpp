#include "plenum/train/study_statistics.h"

#include <gtest/gtest.h>

namespace plenum::train {
namespace {

TEST(StudyStatistics, AQuantileLiesBetweenNeighbours) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile_of(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile_of(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile_of(values, 1), 4);
  EXPECT_DOUBLE_EQ(quantile_of(std::vector<double>{7}, 0.95), 7);
  EXPECT_DOUBLE_EQ(quantile_of({}, 0.5), 0);
}

TEST(StudyStatistics, CorrelationDoesNotSeeAFactor) {
  const std::vector<double> x = {1, 2, 4};
  EXPECT_NEAR(correlation_of(x, std::vector<double>{3, 6, 12}), 1, 1e-12);
  EXPECT_NEAR(correlation_of(x, std::vector<double>{-1, -2, -4}), -1, 1e-12);
  EXPECT_DOUBLE_EQ(correlation_of(x, std::vector<double>{5, 5, 5}), 0);
}

TEST(StudyStatistics, RSquaredSeesAFactor) {
  const std::vector<double> measured = {1, 2, 3};
  EXPECT_DOUBLE_EQ(r_squared(measured, measured), 1);
  EXPECT_DOUBLE_EQ(r_squared(std::vector<double>{2, 2, 2}, measured), 0);
  // 1 + 4 + 9 is left of 2.
  EXPECT_DOUBLE_EQ(r_squared(std::vector<double>{2, 4, 6}, measured), -6);
}

TEST(StudyStatistics, ErrorsAreSharesOfWhatWasMeasured) {
  const std::vector<double> measured = {100, 200, 10, 50};
  const std::vector<double> predicted = {104, 180, 10, 60};
  const ErrorSummary errors = summarise_errors(predicted, measured);
  EXPECT_EQ(errors.count, 4);
  EXPECT_NEAR(errors.mean, (0.04 + 0.1 + 0 + 0.2) / 4, 1e-12);
  EXPECT_NEAR(errors.median, 0.07, 1e-12);
  EXPECT_NEAR(errors.most, 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(errors.share_within_5_percent, 0.5);
  EXPECT_GT(errors.correlation, 0.98);
  EXPECT_EQ(summarise_errors({}, {}).count, 0);
}

TEST(StudyStatistics, SpreadIsOfSeveralRuns) {
  EXPECT_DOUBLE_EQ(spread_of(std::vector<double>{9, 10, 11}), 0.2);
  EXPECT_DOUBLE_EQ(spread_of(std::vector<double>{9}), 0);
}

TEST(StudyStatistics, WhatDiffersFromRunToRunCannotBePredicted) {
  // Steps of 10, 12 and 14, and 0.3 more or less in each of two runs: a mean of both keeps half of the
  // variance, which is 2 * 0.3^2 for two numbers that are 0.6 apart.
  const std::vector<std::vector<double>> runs = {{10.3, 11.7, 14.3}, {9.7, 12.3, 13.7}};
  EXPECT_NEAR(attainable_r_squared(runs).value(), 1 - 3 * 0.3 * 0.3 / 8, 1e-12);
  EXPECT_NEAR(attainable_r_squared(std::vector(2, runs[0])).value(), 1, 1e-12);
  EXPECT_FALSE(attainable_r_squared(std::span(runs).first(1)));
  EXPECT_FALSE(attainable_r_squared({}));
}

TEST(StudyStatistics, VariationIsAShareOfTheMean) {
  EXPECT_DOUBLE_EQ(variation_of(std::vector<double>{9, 11}), 0.1);
  EXPECT_EQ(variation_of({}), 0);
}

TEST(StudyStatistics, RegretIsWhatTheChosenWayLosesToTheFastest) {
  const std::vector<WorkTime> times = {{.work = "a", .predicted = 3, .measured = 4},
                                       {.work = "alone", .predicted = 1, .measured = 1},
                                       {.work = "b", .predicted = 1, .measured = 2},
                                       {.work = "a", .predicted = 2, .measured = 5},
                                       {.work = "b", .predicted = 9, .measured = 3}};
  const std::vector<Regret> regrets = regrets_of(times);
  ASSERT_EQ(regrets.size(), 2);
  EXPECT_EQ(regrets[0].work, "a");
  EXPECT_EQ(regrets[0].num_ways, 2);
  EXPECT_EQ(regrets[0].chosen, 3);
  EXPECT_EQ(regrets[0].fastest, 0);
  EXPECT_DOUBLE_EQ(regrets[0].regret, 0.25);
  EXPECT_EQ(regrets[1].chosen, 2);
  EXPECT_DOUBLE_EQ(regrets[1].regret, 0);
}

}  // namespace
}  // namespace plenum::train
