// Runs that do K-FAC's work in the bubbles of their pipeline.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plenum/io/directory.h"
#include "plenum/schedule/core/refreshes.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/on_one_rank.h"
#include "plenum/schedule/text/schedule_json.h"
#include "plenum/schedule/text/schedule_text.h"
#include "plenum/train/filled_schedule.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/replicas.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/run_plan.h"
#include "plenum/train/starting_model.h"

#include "tests/support/constant_costs.h"
#include "tests/support/expect_user_error.h"
#include "tests/train/filled_run_fixture.h"

namespace plenum::train {
namespace {

using schedule::ActionType;
using schedule::Schedule;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class FilledRun : public FilledRunTest {
 protected:
  FilledRun() : FilledRunTest(optim::OptimizerKind::Kfac) {}
};

TEST_F(FilledRun, KilledAtAnyStepEndsWithTheBytesOfOneThatWasNot) {
  for (const bool is_averaged : {false, true}) {
    RunOptions given = pipeline("unused");
    if (is_averaged) given.optimizer.optimizer.kfac.average = 0.9;
    const RunOptions whole = in_directory(with_file(given), is_averaged ? "averaged" : "whole");
    run(whole);
    EXPECT_THAT(observer_.checkpoints, ElementsAre(3, 6, 9, kStepsOfRun));
    for (std::uint64_t step = 3; step < kStepsOfRun; ++step) {
      SCOPED_TRACE(step);
      const RunOptions killed =
          in_directory(whole, std::string(is_averaged ? "averaged" : "killed") + " " + std::to_string(step));
      run_killed_after(killed, step);
      run(killed);
      EXPECT_EQ(observer_.steps.front().step, step / kCycle * kCycle + 1 - (step % kCycle == 0 ? kCycle : 0))
          << "a checkpoint is written after what is told of a step";
      expect_same_checkpoint(killed, whole);
    }
  }
}

TEST_F(FilledRun, FreshKilledOrStoppedAtAnyStepEndsWithTheBytesOfOneThatWasNot) {
  const RunOptions given = pipeline("unused");
  const schedule::FillResult filled =
      filled_of(plan_of(given)->plain_schedule(), {.mode = schedule::FillMode::Fresh, .drains = true});
  EXPECT_GT(filled.schedule.num_steps(), 1U);
  EXPECT_LT(filled.coverage_b.mean, 1);
  RunOptions whole = in_directory(given, "whole");
  whole.run.schedule = directory_.write("fresh.txt", schedule::print_schedule_text(filled.schedule));
  run(whole);
  for (std::uint64_t step = 1; step < kStepsOfRun; ++step) {
    SCOPED_TRACE(step);
    const RunOptions killed = in_directory(whole, "killed " + std::to_string(step));
    run_killed_after(killed, step);
    run(killed);
    expect_same_checkpoint(killed, whole);
    const RunOptions stopped = in_directory(whole, "stopped " + std::to_string(step));
    run_and_stop(stopped, step);
    run(stopped);
    expect_same_checkpoint(stopped, whole);
  }
}

TEST_F(FilledRun, AskedToStopAtAnyStepGoesOnToTheEndOfItsCycle) {
  const RunOptions whole = in_directory(with_file(pipeline("unused")), "whole");
  run(whole);
  for (std::uint64_t step = 1; step < kStepsOfRun; ++step) {
    SCOPED_TRACE(step);
    const RunOptions stopped = in_directory(whole, "stopped " + std::to_string(step));
    // The step after it carries the word.
    const std::uint64_t end = std::min((step + 1 + kCycle - 1) / kCycle * kCycle, kStepsOfRun);
    EXPECT_EQ(run_and_stop(stopped, step).step, end);
    EXPECT_EQ(observer_.checkpoints.back(), end);
    run(stopped);
    expect_same_checkpoint(stopped, whole);
  }
}

TEST_F(FilledRun, IsEvaluatedAtTheEndOfACycle) {
  RunOptions given = with_file(pipeline("run"));
  given.evaluation.every = {4, optim::DurationUnit::Steps};
  run(given);
  std::vector<std::uint64_t> steps;
  for (const auto& [step, evaluation] : observer_.evaluations) steps.push_back(step);
  EXPECT_THAT(steps, ElementsAre(6, 9, kStepsOfRun));
}

// The last step lies in a cycle, whose statistics are gone when the run resumes.
TEST_F(FilledRun, MadeLongerWithinACycleUsesNothingOfTheStepsBefore) {
  RunOptions given = with_file(pipeline("run", 7));
  run(given);
  const auto before = states_of(given, "kfac_a_inverse");
  ASSERT_FALSE(before.empty());
  given.run.steps.amount = 9;
  run(given);
  EXPECT_TRUE(states_of(given, "kfac_a_inverse") == before) << "no refresh begins before step 10";
  given.run.steps.amount = 13;
  run(given);
  const auto after = states_of(given, "kfac_a_inverse");
  EXPECT_FALSE(after == before);
  for (const auto& [name, values] : after) {
    EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) << name;
  }
  for (const StepReport& step : observer_.steps) EXPECT_FALSE(step.outcome.is_skipped);
}

TEST_F(FilledRun, MeasuresItsStepsFirstAndTrainsAsIfItHadNot) {
  for (const BubbleFill fill : {BubbleFill::Deferred, BubbleFill::Fresh}) {
    const bool is_fresh = fill == BubbleFill::Fresh;
    const std::string name = is_fresh ? "fresh" : "deferred";
    SCOPED_TRACE(name);
    RunOptions given = pipeline(name);
    given.run.fill = fill;
    run(given);
    // Where the machine does something else meanwhile, there may seem to be no room.
    EXPECT_THAT(observer_.notes, Contains(AnyOf(HasSubstr("K-FAC's work fills the bubbles: a refresh"),
                                                HasSubstr("K-FAC works outside bubbles"))));
    const std::string kept = RunPaths(given.run.directory).schedule;
    const Schedule filled = schedule::parse_schedule_text(io::read_file(kept), kept);
    EXPECT_TRUE(is_fresh ? takes_fresh_statistics(filled) : !filled.problem.has_partial_curvature);
    EXPECT_TRUE(schedule::Refreshes(filled).is_drained(0));
    EXPECT_TRUE(is_filled_from(filled, plan_of(given)->plain_schedule()));
    RunOptions by_file = in_directory(given, name + " by file");
    by_file.run.fill.reset();
    by_file.run.schedule = directory_.write("copy.txt", io::read_file(kept));
    run(by_file);
    EXPECT_EQ(io::read_file(RunPaths(by_file.run.directory).schedule), io::read_file(kept));
    expect_same_checkpoint(by_file, given);
  }
}

TEST_F(FilledRun, ResumesByTheScheduleThatItKeptAndMakesAnotherForAnotherMesh) {
  RunOptions given = pipeline("run", 400);
  run_and_stop(given, 1);
  const std::string path = RunPaths(given.run.directory).schedule;
  const std::string kept = io::read_file(path);
  run_and_stop(given, observer_.steps.back().step + 1);
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("K-FAC's work is where")));
  EXPECT_EQ(io::read_file(path), kept);
  given.data.micro_batches = 3;
  run_and_stop(given, observer_.steps.back().step + 1);
  EXPECT_THAT(observer_.notes,
              Contains(HasSubstr("is of other steps than the run's now; a new one is made")));
  EXPECT_NE(io::read_file(path), kept);
  const Schedule deferred = filled_of(plan_of(given)->plain_schedule(), {.drains = true}).schedule;
  EXPECT_FALSE(takes_fresh_statistics(deferred));
  directory_.write("run/schedule.txt", schedule::print_schedule_text(deferred));
  given.run.fill = BubbleFill::Fresh;
  run_and_stop(given, observer_.steps.back().step + 1);
  EXPECT_THAT(observer_.notes,
              Contains(HasSubstr("is of other steps than the run's now; a new one is made")));
  directory_.write("run/schedule.txt", "plenum-schedule 1\nlayers none\n");
  run_and_stop(given, observer_.steps.back().step + 1);
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("a new one is made")));
  given.run.fill.reset();
  given.run.ranks = given.run.pp = 1;
  run_and_stop(given, observer_.steps.back().step + 1);
  EXPECT_THAT(observer_.notes, Not(Contains(HasSubstr("bubbles"))));
}

TEST_F(FilledRun, WithAnIntervalOrWithoutFillingWorksOutsideBubbles) {
  RunOptions every = pipeline("every");
  every.optimizer.optimizer.kfac.every = 2;
  EXPECT_EQ(every.fill(), BubbleFill::Off);
  run(every);
  EXPECT_THAT(observer_.checkpoints, ElementsAre(2, 4, 6, 8, 10, 11));
  EXPECT_FALSE(io::path_exists(RunPaths(every.run.directory).schedule));
  RunOptions off = pipeline("off");
  off.run.fill = BubbleFill::Off;
  EXPECT_EQ(off.fill(), BubbleFill::Off);
  EXPECT_EQ(alone("alone").fill(), BubbleFill::Off);
  EXPECT_EQ(pipeline("auto").fill(), BubbleFill::Deferred);
}

TEST_F(FilledRun, RefusesWhatDoesNotGoTogether) {
  RunOptions given = pipeline("run");
  given.run.fill = BubbleFill::Deferred;
  given.optimizer.optimizer.kfac.every = 2;
  test::expect_user_error([&] { given.check(); }, "--kfac-every does not go with --fill");
  given.optimizer.optimizer.kfac.every.reset();
  EXPECT_NO_THROW(given.check());
  given.run.pp = 1;
  test::expect_user_error([&] { given.check(); }, "add --pp");
  given.run.pp = 2;
  given.optimizer.optimizer.kind = optim::OptimizerKind::AdamW;
  test::expect_user_error([&] { given.check(); }, "--fill is for --optimizer kfac and soap");
  RunOptions by_file = pipeline("run");
  by_file.run.schedule = "schedule.json";
  EXPECT_NO_THROW(by_file.check());
  by_file.run.fill = BubbleFill::Off;
  test::expect_user_error([&] { by_file.check(); }, "schedule.json says itself");
}

TEST_F(FilledRun, RefusesAScheduleOfAnotherRun) {
  const RunOptions given = with_file(pipeline("run"));
  const auto refused = [&](const std::function<void(RunOptions&)>& change, const std::string& why) {
    RunOptions changed = given;
    change(changed);
    test::expect_user_error([&] { run(changed); }, why);
    EXPECT_FALSE(io::path_exists(changed.run.directory)) << why;
  };
  refused(
      [](RunOptions& other) {
        other.run.ranks = 4;
        other.run.threads = 4;
      },
      "give --ranks 2");
  refused([](RunOptions& other) { other.model.layers = 6; },
          "stages of 4 layers together, and the model has 6");
  refused([](RunOptions& other) { other.data.micro_batches = 8; }, "give --micro-batches 4");
  refused([](RunOptions& other) { other.run.recompute = schedule::Recomputation::Full; }, "--recompute");
  refused([](RunOptions& other) { other.optimizer.optimizer.kind = optim::OptimizerKind::Lamb; },
          "add --optimizer kfac");
  refused([](RunOptions& other) { other.run.schedule += ".txt"; }, "filled.txt.txt");
  const Schedule plain = plan_of(pipeline("run"))->plain_schedule();
  const auto of_schedule = [&](const Schedule& schedule) {
    return [&, text = schedule::print_schedule_json(schedule)](RunOptions& other) {
      other.run.schedule = directory_.write("other.json", text);
    };
  };
  refused(of_schedule(plain), "has nothing of K-FAC");
  refused(of_schedule(plan_of(alone("run"))->plain_schedule()), "is of one stage");
  refused([](RunOptions& other) { other.run.pp = 1; }, "is of 2 stages");
  refused(of_schedule(filled_of(plain, {}).schedule), "waits at the end of every step");
  Schedule fewer_maps = schedule::fill(plain, schedule::KfacFiller(4),
                                       test::ConstantCosts({{ActionType::Forward, 1.0}}), {.drains = true})
                            .schedule;
  refused(of_schedule(fewer_maps), "has 4 linear maps with factors in a layer, the model 6");
  Schedule untied = plain;
  untied.problem.has_tied_parameters = false;
  for (schedule::RankProgram& rank : untied.ranks) {
    schedule::LaneProgram& lane = rank.lane(schedule::Lane::DataParallel);
    schedule::LaneProgram rest;
    for (const schedule::Action& action : lane.actions())
      if (action.type != ActionType::ReduceTied) rest.append(action);
    rest.end_step();
    lane = rest;
  }
  refused(of_schedule(filled_of(untied, {.drains = true}).schedule), "does not say tied");
}

TEST_F(FilledRun, OnOneRankGivesTheLossesOfThePipeline) {
  const RunOptions filled = with_file(pipeline("pipeline"));
  run(filled);
  const std::vector<StepReport> expected = observer_.steps;
  RunOptions serial = alone("serial");
  serial.run.schedule = directory_.write(
      "serial.txt", schedule::print_schedule_text(schedule::on_one_rank(schedule::parse_schedule_text(
                        io::read_file(filled.run.schedule), filled.run.schedule))));
  run(serial);
  ASSERT_EQ(observer_.steps.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double loss = expected[i].outcome.loss();
    EXPECT_NEAR(observer_.steps[i].outcome.loss(), loss, 1e-4 * loss) << i;
  }
  const RunOptions stopped = in_directory(serial, "stopped");
  run_and_stop(stopped, 4);
  run(stopped);
  expect_same_checkpoint(stopped, serial);
}

TEST_F(FilledRun, GoesOnByItsCopyWhereTheFileIsGone) {
  const RunOptions whole = in_directory(with_file(pipeline("unused")), "whole");
  run(whole);
  const RunOptions stopped = in_directory(whole, "stopped");
  run_and_stop(stopped, 4);
  std::filesystem::remove(stopped.run.schedule);
  run(stopped);
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("the run resumes with its copy")));
  expect_same_checkpoint(stopped, whole);
}

TEST_F(FilledRun, KeepsLessWaitingWhereMemoryIsShortAndWorksOutsideBubblesWhereThereIsNone) {
  const RunOptions given = pipeline("run");
  const Processes alone;
  const test::ConstantCosts costs = known_costs();
  const auto fill_with = [&](std::uint64_t more_bytes) {
    const std::unique_ptr<RunPlan> plan = plan_of(given);
    observer_ = RecordingObserver();
    fill_bubbles(*plan, {.options = given,
                         .processes = alone,
                         .observer = observer_,
                         .available_bytes = plan->memory().planned_bytes + more_bytes,
                         .costs = &costs});
    return plan->schedule();
  };
  const std::unique_ptr<RunPlan> unfilled = plan_of(given);
  EXPECT_EQ(fill_with(0), unfilled->schedule());
  EXPECT_THAT(observer_.notes, ElementsAre(HasSubstr("K-FAC works outside bubbles, in every step")));
  const std::uint64_t enough = std::uint64_t{1} << 30;
  EXPECT_NE(fill_with(enough), unfilled->schedule());
  EXPECT_THAT(observer_.notes, ElementsAre(HasSubstr("K-FAC's work fills the bubbles")));
  for (const std::uint64_t more_bytes : {1'000, 20'000, 50'000}) {
    const Schedule limited = fill_with(more_bytes);
    EXPECT_LE(unfilled->bytes_with(limited, std::nullopt),
              unfilled->bytes_with(unfilled->schedule(), std::nullopt) + more_bytes);
  }
}

/// Poisons the weights of the step whose statistics a cycle works on.
TEST_F(FilledRun, DropsTheWorkOfACycleWhoseStatisticsAreOfASkippedStep) {
  const RunOptions given = with_file(pipeline("run"));
  const PreparedData dataset(given.data.directory);
  const RunPlan plan(given, dataset, starting_model(given.model, dataset), std::nullopt, 1,
                     schedule::parse_schedule_text(io::read_file(given.run.schedule), given.run.schedule));
  Replicas replicas(plan.mesh(), plan.schedule(), plan.program());
  base::ThreadPool pool(1);
  replicas.write_weights([&](const tensor::TensorView& weights_N) {
    write_starting_weights(given.model, {}, replicas.parameters(), 3, pool, weights_N,
                           [](std::string_view) {});
  });
  replicas.begin(0, 0);
  const auto step = [&](std::uint64_t index) {
    replicas.begin_step(plan.batches().make(index), {.learning_rate = 1e-2});
    return replicas.end_step().outcome;
  };
  const auto inverses = [&] {
    std::vector<std::vector<float>> all;
    for (const StateTensor& state : replicas.tensors().states) {
      if (state.name.find("_inverse.") != std::string::npos)
        all.emplace_back(state.values.begin(), state.values.end());
    }
    return all;
  };
  for (std::uint64_t index = 0; index < kCycle; ++index) EXPECT_FALSE(step(index).is_skipped);
  const auto before = inverses();
  std::vector<float> weights;
  const auto for_each_weight = [&](base::FunctionRef<void(std::size_t, std::span<float>)> visit) {
    replicas.tensors().weights.for_each_in(0, replicas.parameters().num_elements(), visit);
  };
  for_each_weight([&](std::size_t, std::span<float> values) {
    weights.insert(weights.end(), values.begin(), values.end());
  });
  for_each_weight([](std::size_t, std::span<float> values) { std::ranges::fill(values, std::nanf("")); });
  EXPECT_TRUE(step(kCycle).is_skipped);
  std::size_t next = 0;
  for_each_weight([&](std::size_t, std::span<float> values) {
    std::ranges::copy(std::span(weights).subspan(next, values.size()), values.begin());
    next += values.size();
  });
  for (std::uint64_t index = kCycle + 1; index < 2 * kCycle; ++index) EXPECT_FALSE(step(index).is_skipped);
  EXPECT_TRUE(inverses() == before);
  for (std::uint64_t index = 2 * kCycle; index < 3 * kCycle; ++index) EXPECT_FALSE(step(index).is_skipped);
  EXPECT_FALSE(inverses() == before);
}

TEST_F(FilledRun, LaysTheFirstStepOfALaterCycleOverItsPrediction) {
  RunOptions given = with_file(pipeline("run", 15));
  given.run.process.overlay = directory_ / "overlay.json";
  run(given);
  const nlohmann::json overlay = nlohmann::json::parse(io::read_file(given.run.process.overlay));
  EXPECT_THAT(overlay.at("title").get<std::string>(), HasSubstr("step 10"));
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("the time of 5 steps was predicted")));
}

}  // namespace
}  // namespace plenum::train
