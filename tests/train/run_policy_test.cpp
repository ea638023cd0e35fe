#include "plenum/train/run_policy.h"

#include <vector>

#include <gmock/gmock.h>

namespace plenum::train {
namespace {

using testing::ElementsAre;

const RunCadence kCadence{.num_steps = 10, .evaluate_every = 4, .checkpoint_every = 3};
constexpr Pause kNone{};
constexpr pipeline::DueByClock kTimeUp{.is_time_up = true};

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

RunCadence in_cycles_of_three() {
  RunCadence cadence = kCadence;
  cadence.num_steps = 16;
  cadence.is_drained = {true, false, false};
  return cadence;
}

TEST(RunPolicy, WaitsForTheEndOfACycle) {
  const RunCadence cadence = in_cycles_of_three();
  EXPECT_THAT(steps_with(cadence, &Pause::is_evaluated), ElementsAre(6, 9, 12, 16));
  EXPECT_THAT(steps_with(cadence, &Pause::is_saved), ElementsAre(3, 6, 9, 12, 15, 16));
  EXPECT_THAT(steps_with(cadence, &Pause::is_end), ElementsAre(16));
  const RunPolicy policy(cadence);
  const Agreed stop{.is_stop_asked = true};
  const Agreed due{.due = {.is_checkpoint_due = true, .is_evaluation_due = true}};
  for (const std::uint64_t step : {1, 2, 4, 5}) {
    EXPECT_EQ(policy.after(step, stop), kNone) << step;
    EXPECT_EQ(policy.after(step, due), kNone) << step;
    EXPECT_FALSE(policy.may_pause_after(step));
  }
  EXPECT_EQ(policy.after(3, stop), (Pause{.is_end = true}));
  EXPECT_EQ(policy.after(3, due), (Pause{.is_evaluated = true, .is_saved = true}));
  EXPECT_TRUE(policy.may_pause_after(16)) << "the end of the run, within a cycle";
}

TEST(RunPolicy, LeavesTimeForTheStepsToTheEndOfACycle) {
  RunCadence cadence = in_cycles_of_three();
  cadence.time_limit_seconds = 60;
  const RunPolicy policy(cadence);
  const auto is_time_up = [&](std::uint64_t step, double elapsed_seconds) {
    return policy.due_by_clock(step, {.elapsed_seconds = elapsed_seconds, .step_seconds = 10}).is_time_up;
  };
  // Steps 4 to 6, of which each can say so.
  EXPECT_FALSE(is_time_up(4, 29));
  EXPECT_TRUE(is_time_up(4, 30));
  EXPECT_FALSE(is_time_up(5, 39));
  EXPECT_TRUE(is_time_up(5, 40));
  // If step 6 does not say so the run goes on to step 9.
  EXPECT_FALSE(is_time_up(6, 29));
  EXPECT_TRUE(is_time_up(6, 30));
}

TEST(RunPolicy, PausesForTheStepThatIsDrawn) {
  RunCadence cadence = kCadence;
  EXPECT_THAT(steps_with(cadence, &Pause::is_traced), ElementsAre());
  cadence.traced_step = 2;
  EXPECT_THAT(steps_with(cadence, &Pause::is_traced), ElementsAre(2));
  EXPECT_THAT(steps_with(cadence, &Pause::is_measured), ElementsAre());
  cadence.first_measured_step = 2;
  cadence.end_measured_step = 4;
  EXPECT_THAT(steps_with(cadence, &Pause::is_measured), ElementsAre(2, 3));
  EXPECT_TRUE(RunPolicy(cadence).due_after(2).is_needed());
  EXPECT_FALSE(RunPolicy(kCadence).due_after(2).is_needed());
}

TEST(RunPolicy, SaysThatTimeIsUpBeforeAStepThatMightNotEndInTime) {
  RunCadence cadence = kCadence;
  cadence.time_limit_seconds = 60;
  const RunPolicy policy(cadence);
  EXPECT_FALSE(
      policy.due_by_clock(1, {.elapsed_seconds = 50, .step_seconds = 5, .pause_seconds = 4}).is_any());
  EXPECT_EQ(policy.due_by_clock(1, {.elapsed_seconds = 50, .step_seconds = 5, .pause_seconds = 5}), kTimeUp);
  EXPECT_EQ(policy.due_by_clock(1, {.elapsed_seconds = 61}), kTimeUp);
  EXPECT_FALSE(RunPolicy(kCadence).due_by_clock(1, {.elapsed_seconds = 1e9}).is_any());
}

TEST(RunPolicy, LeavesTimeForTheStepsThatBeginBeforeAnOutcomeIsKnown) {
  RunCadence cadence = kCadence;
  cadence.time_limit_seconds = 60;
  cadence.lag = 1;
  const RunPolicy policy(cadence);
  EXPECT_FALSE(
      policy.due_by_clock(1, {.elapsed_seconds = 40, .step_seconds = 5, .pause_seconds = 4}).is_any());
  EXPECT_EQ(policy.due_by_clock(1, {.elapsed_seconds = 40, .step_seconds = 5, .pause_seconds = 5}), kTimeUp);
}

TEST(RunPolicy, SaysWhatIsDueSinceItWasDoneLast) {
  RunCadence cadence = kCadence;
  cadence.checkpoint_seconds = 600;
  cadence.evaluation_seconds = 60;
  const RunPolicy policy(cadence);
  EXPECT_FALSE(
      policy.due_by_clock(1, {.since_checkpoint_seconds = 599, .since_evaluation_seconds = 59}).is_any());
  EXPECT_EQ(policy.due_by_clock(1, {.since_checkpoint_seconds = 600}),
            (pipeline::DueByClock{.is_checkpoint_due = true}));
  EXPECT_EQ(policy.due_by_clock(1, {.since_evaluation_seconds = 60}),
            (pipeline::DueByClock{.is_evaluation_due = true}));
}

TEST(RunPolicy, DoesSeldomWhatTakesLong) {
  RunCadence cadence = kCadence;
  cadence.checkpoint_seconds = 600;
  cadence.evaluation_seconds = 60;
  const RunPolicy policy(cadence);
  const RunTimes early{.since_checkpoint_seconds = 1999,
                       .since_evaluation_seconds = 99,
                       .checkpoint_seconds = 100,
                       .evaluation_seconds = 5};
  EXPECT_FALSE(policy.due_by_clock(1, early).is_any());
  RunTimes late = early;
  late.since_checkpoint_seconds = 2000;
  late.since_evaluation_seconds = 100;
  EXPECT_EQ(policy.due_by_clock(1, late),
            (pipeline::DueByClock{.is_checkpoint_due = true, .is_evaluation_due = true}));
}

/// The steps of a run after which a checkpoint is written, whose steps take ten seconds each and its
/// checkpoints `checkpoint_seconds`.
std::vector<std::uint64_t> saved_by_clock(const RunCadence& cadence, double checkpoint_seconds) {
  const RunPolicy policy(cadence);
  std::vector<std::uint64_t> saved;
  RunTimes times{.step_seconds = 10};
  for (std::uint64_t step = 1; step <= cadence.num_steps; ++step) {
    const Pause pause = policy.after(step, {.due = policy.due_by_clock(step, times)});
    times.elapsed_seconds += 10;
    times.since_checkpoint_seconds += 10;
    if (!pause.is_saved) continue;
    saved.push_back(step);
    times.elapsed_seconds += checkpoint_seconds;
    times.checkpoint_seconds = checkpoint_seconds;
    times.since_checkpoint_seconds = 0;
  }
  return saved;
}

TEST(RunPolicy, SavesByTheClockAsOftenAsItIsCheap) {
  const RunCadence cadence{.num_steps = 100, .checkpoint_seconds = 300};
  // The clock is read before a step, so each is one later than asked for.
  EXPECT_THAT(saved_by_clock(cadence, 1), ElementsAre(31, 62, 93, 100));
  EXPECT_THAT(saved_by_clock(cadence, 20), ElementsAre(31, 72, 100));
}

TEST(RunPolicy, LeavesStepsUncountedOnlyWhereTrainingGoesOn) {
  RunCadence cadence = kCadence;
  cadence.lag = 1;
  const RunPolicy policy(cadence);
  EXPECT_EQ(policy.most_uncounted(policy.due_after(1), {}), 1U);
  EXPECT_EQ(policy.most_uncounted(policy.due_after(1), {.is_stop_asked = true}), 0U);
  EXPECT_EQ(policy.most_uncounted(policy.due_after(1), {.due = kTimeUp}), 0U);
  EXPECT_EQ(policy.most_uncounted(policy.due_after(1), {.due = {.is_checkpoint_due = true}}), 0U);
  EXPECT_EQ(policy.most_uncounted(policy.due_after(1), {.due = {.is_evaluation_due = true}}), 0U);
  EXPECT_EQ(policy.most_uncounted(policy.due_after(3), {}), 0U);
  EXPECT_EQ(policy.most_uncounted(policy.due_after(10), {}), 0U);
  EXPECT_EQ(RunPolicy(kCadence).most_uncounted(kNone, {}), 0U);
}

TEST(RunPolicy, DoesWhatIsDueWhereNobodyObjects) {
  const RunPolicy policy(kCadence);
  for (std::uint64_t step = 1; step <= 10; ++step) EXPECT_EQ(policy.after(step, {}), policy.due_after(step));
}

TEST(RunPolicy, EvaluatesAndSavesWhereAClockSaysSo) {
  const RunPolicy policy(kCadence);
  EXPECT_EQ(policy.after(1, {.due = {.is_checkpoint_due = true}}), (Pause{.is_saved = true}));
  EXPECT_EQ(policy.after(3, {.due = {.is_evaluation_due = true}}),
            (Pause{.is_evaluated = true, .is_saved = true}));
}

TEST(RunPolicy, EndsAtOnceWhereAStopWasAgreedOn) {
  RunCadence cadence = kCadence;
  cadence.traced_step = 4;
  const RunPolicy policy(cadence);
  EXPECT_EQ(policy.after(1, {.is_stop_asked = true}), (Pause{.is_end = true}));
  EXPECT_EQ(policy.after(4, {.is_stop_asked = true}), (Pause{.is_traced = true, .is_end = true}));
  EXPECT_EQ(policy.after(8, {.due = {.is_time_up = true, .is_checkpoint_due = true}}),
            (Pause{.is_end = true}));
}

TEST(RunPolicy, SavesNothingAfterAStepThatWasSkipped) {
  const RunPolicy policy(kCadence);
  EXPECT_EQ(policy.after(3, {.is_skipped = true}), kNone);
  EXPECT_EQ(policy.after(1, {.is_skipped = true, .due = {.is_checkpoint_due = true}}), kNone);
  EXPECT_EQ(policy.after(8, {.is_skipped = true}), (Pause{.is_evaluated = true}));
}

TEST(Agreed, RemembersWhatAnyStepAskedForAndTheSkipOfTheNewest) {
  Agreed agreed;
  agreed.add({.is_skipped = true, .is_stop_asked = true, .due = {.is_checkpoint_due = true}});
  agreed.add({});
  EXPECT_TRUE(agreed.is_stop_asked);
  EXPECT_EQ(agreed.due, (pipeline::DueByClock{.is_checkpoint_due = true}));
  EXPECT_FALSE(agreed.is_skipped);
  agreed.add({.is_skipped = true});
  EXPECT_TRUE(agreed.is_skipped);
}

}  // namespace
}  // namespace plenum::train
