#include "plenum/train/run_policy.h"

#include <vector>

#include <gmock/gmock.h>

namespace plenum::train {
namespace {

using testing::ElementsAre;

constexpr RunCadence kCadence{.num_steps = 10, .evaluate_every = 4, .checkpoint_every = 3};
constexpr Pause kNone{};

/// The steps of a run after which something is due.
std::vector<std::uint64_t> steps_with(const RunCadence& cadence, bool Pause::*what) {
  const RunPolicy policy(cadence);
  std::vector<std::uint64_t> steps;
  for (std::uint64_t step = 1; step <= cadence.num_steps; ++step) {
    if (policy.due_after(step).*what) steps.push_back(step);
  }
  return steps;
}

TEST(RunPolicy, EvaluatesAndSavesAtIntervalsAndAtTheEnd) {
  EXPECT_THAT(steps_with(kCadence, &Pause::is_evaluated), ElementsAre(4, 8, 10));
  EXPECT_THAT(steps_with(kCadence, &Pause::is_saved), ElementsAre(3, 6, 9, 10));
  EXPECT_THAT(steps_with(kCadence, &Pause::is_end), ElementsAre(10));
}

TEST(RunPolicy, WithoutIntervalsEvaluatesAndSavesAtTheEndOnly) {
  const RunCadence cadence{.num_steps = 5};
  EXPECT_THAT(steps_with(cadence, &Pause::is_evaluated), ElementsAre(5));
  EXPECT_THAT(steps_with(cadence, &Pause::is_saved), ElementsAre(5));
}

TEST(RunPolicy, PausesForTheStepThatIsDrawn) {
  RunCadence cadence = kCadence;
  EXPECT_THAT(steps_with(cadence, &Pause::is_traced), ElementsAre());
  cadence.traced_step = 2;
  EXPECT_THAT(steps_with(cadence, &Pause::is_traced), ElementsAre(2));
  EXPECT_TRUE(RunPolicy(cadence).due_after(2).is_needed());
  EXPECT_FALSE(RunPolicy(kCadence).due_after(2).is_needed());
}

TEST(RunPolicy, AsksToStopBeforeAStepThatMightNotEndInTime) {
  RunCadence cadence = kCadence;
  cadence.time_limit_seconds = 60;
  const RunPolicy policy(cadence);
  EXPECT_FALSE(policy.asks_to_stop({.elapsed_seconds = 50, .step_seconds = 5, .pause_seconds = 4}));
  EXPECT_TRUE(policy.asks_to_stop({.elapsed_seconds = 50, .step_seconds = 5, .pause_seconds = 5}));
  EXPECT_TRUE(policy.asks_to_stop({.elapsed_seconds = 61, .step_seconds = 0, .pause_seconds = 0}));
  EXPECT_FALSE(RunPolicy(kCadence).asks_to_stop({.elapsed_seconds = 1e9}));
}

TEST(RunPolicy, LeavesStepsUncountedOnlyWhereTrainingGoesOn) {
  RunCadence cadence = kCadence;
  cadence.lag = 1;
  const RunPolicy policy(cadence);
  EXPECT_EQ(policy.most_uncounted(policy.due_after(1), false), 1U);
  EXPECT_EQ(policy.most_uncounted(policy.due_after(1), true), 0U);
  EXPECT_EQ(policy.most_uncounted(policy.due_after(3), false), 0U);
  EXPECT_EQ(policy.most_uncounted(policy.due_after(10), false), 0U);
  EXPECT_EQ(RunPolicy(kCadence).most_uncounted(kNone, false), 0U);
}

TEST(RunPolicy, DoesWhatIsDueWhereNobodyObjects) {
  const RunPolicy policy(kCadence);
  for (std::uint64_t step = 1; step <= 10; ++step) EXPECT_EQ(policy.after(step, {}), policy.due_after(step));
}

TEST(RunPolicy, EndsAtOnceWhereAStopWasAgreedOn) {
  RunCadence cadence = kCadence;
  cadence.traced_step = 4;
  const RunPolicy policy(cadence);
  EXPECT_EQ(policy.after(1, {.is_stop_asked = true}), (Pause{.is_end = true}));
  EXPECT_EQ(policy.after(4, {.is_stop_asked = true}), (Pause{.is_traced = true, .is_end = true}));
}

TEST(RunPolicy, SavesNothingAfterAStepThatWasSkipped) {
  const RunPolicy policy(kCadence);
  EXPECT_EQ(policy.after(3, {.is_skipped = true}), kNone);
  EXPECT_EQ(policy.after(8, {.is_skipped = true}), (Pause{.is_evaluated = true}));
}

TEST(Agreed, RemembersAStopOfAnyStepAndTheSkipOfTheNewest) {
  Agreed agreed;
  agreed.add({.is_skipped = true, .is_stop_asked = true});
  agreed.add({});
  EXPECT_TRUE(agreed.is_stop_asked);
  EXPECT_FALSE(agreed.is_skipped);
  agreed.add({.is_skipped = true});
  EXPECT_TRUE(agreed.is_skipped);
}

}  // namespace
}  // namespace plenum::train
