#include "plenum/optim/learning_rate.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/expect_user_error.h"
#include "tests/support/read_golden.h"

namespace plenum::optim {
namespace {

const RunLength kRun{.steps_per_epoch = 10, .tokens_per_step = 100, .sequences_per_step = 4};

LearningRateOptions options(LearningRateSchedule schedule, double warmup) {
  return {.peak = 1, .schedule = schedule, .warmup = {warmup, DurationUnit::Steps}};
}

TEST(LearningRate, IsThatOfHuggingFace) {
  const nlohmann::json golden = test::read_golden("optimizer.json").at("schedules");
  const std::uint64_t total = golden.at("total");
  for (const auto& [name, schedule] :
       {std::pair("constant", LearningRateSchedule::Constant),
        std::pair("linear", LearningRateSchedule::Linear), std::pair("cosine", LearningRateSchedule::Cosine),
        std::pair("wsd", LearningRateSchedule::Wsd)}) {
    LearningRateOptions given = options(schedule, golden.at("warmup"));
    given.decay = {golden.at("decay"), DurationUnit::Steps};
    const LearningRate rate(given, total, kRun);
    const std::vector<double> expected = golden.at(name);
    ASSERT_EQ(expected.size(), total + 1);
    for (std::uint64_t step = 0; step <= total; ++step) {
      EXPECT_NEAR(rate.at(step), expected[step], 1e-12) << name << " at " << step;
    }
  }
}

TEST(LearningRate, OfTheOriginalBertFallsAsIfThereHadBeenNoWarmUp) {
  const LearningRate rate(options(LearningRateSchedule::BertLinear, 10), 100, kRun);
  EXPECT_EQ(rate.at(0), 0);
  EXPECT_DOUBLE_EQ(rate.at(9), 0.9);
  EXPECT_DOUBLE_EQ(rate.at(10), 0.9);
  EXPECT_DOUBLE_EQ(rate.at(60), 0.4);
  EXPECT_NEAR(rate.at(99), 0.01, 1e-15);
}

TEST(LearningRate, OfLambCountsStepsFromOne) {
  const LearningRate rate(options(LearningRateSchedule::Polynomial, 20), 100, kRun);
  EXPECT_DOUBLE_EQ(rate.at(0), 0.05);
  EXPECT_DOUBLE_EQ(rate.at(18), 0.95);
  EXPECT_DOUBLE_EQ(rate.at(19), std::sqrt(0.8));
  EXPECT_DOUBLE_EQ(rate.at(49), std::sqrt(0.5));
  EXPECT_EQ(rate.at(99), 0);
}

TEST(LearningRate, FallsToItsFloorAndStaysThereAfterTheRun) {
  for (const LearningRateSchedule schedule :
       {LearningRateSchedule::Linear, LearningRateSchedule::BertLinear, LearningRateSchedule::Polynomial,
        LearningRateSchedule::Cosine, LearningRateSchedule::Wsd}) {
    LearningRateOptions given = options(schedule, 5);
    given.peak = 2;
    given.final_ratio = 0.1;
    const LearningRate rate(given, 50, kRun);
    for (std::uint64_t step = 5; step < 50; ++step) {
      EXPECT_GE(rate.at(step), 0.2 - 1e-15);
      EXPECT_LE(rate.at(step + 1), rate.at(step));
    }
    EXPECT_DOUBLE_EQ(rate.at(50), 0.2);
    EXPECT_DOUBLE_EQ(rate.at(5000), 0.2);
  }
}

TEST(LearningRate, BeginsAtThePeakWithoutWarmUp) {
  for (const LearningRateSchedule schedule :
       {LearningRateSchedule::Constant, LearningRateSchedule::Linear, LearningRateSchedule::BertLinear,
        LearningRateSchedule::Cosine, LearningRateSchedule::Wsd}) {
    EXPECT_EQ(LearningRate(options(schedule, 0), 10, kRun).at(0), 1);
  }
}

TEST(LearningRate, TakesDurationsInEveryUnit) {
  for (const auto& [warmup, steps] : {std::pair(Duration{1000, DurationUnit::Tokens}, 10U),
                                      std::pair(Duration{80, DurationUnit::Sequences}, 20U),
                                      std::pair(Duration{1.5, DurationUnit::Epochs}, 15U),
                                      std::pair(Duration{0.06, DurationUnit::Run}, 3U)}) {
    LearningRateOptions given = options(LearningRateSchedule::Linear, 0);
    given.warmup = warmup;
    const LearningRate rate(given, 50, kRun);
    EXPECT_LT(rate.at(steps - 1), 1);
    EXPECT_EQ(rate.at(steps), 1);
  }
}

TEST(LearningRate, MayWarmUpToTheLastStep) {
  const LearningRate rate(options(LearningRateSchedule::Linear, 50), 50, kRun);
  EXPECT_DOUBLE_EQ(rate.at(49), 0.98);
  EXPECT_TRUE(std::isfinite(rate.at(50)));
}

TEST(LearningRate, RefusesWhatDoesNotFitIntoTheRun) {
  test::expect_user_error([&] { LearningRate(options(LearningRateSchedule::Linear, 51), 50, kRun); },
                          "longer than the run");
  LearningRateOptions given = options(LearningRateSchedule::Wsd, 30);
  given.decay = {21, DurationUnit::Steps};
  test::expect_user_error([&] { LearningRate(given, 50, kRun); }, "--decay-duration");
}

TEST(LearningRate, IsNotZeroInARunOfOneStep) {
  EXPECT_EQ(LearningRate({.peak = 3}, 1, kRun).at(0), 3);
}

}  // namespace
}  // namespace plenum::optim
