// Runs that refresh SOAP's bases in the bubbles of their pipeline.

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plenum/io/directory.h"
#include "plenum/schedule/core/refreshes.h"
#include "plenum/schedule/fill/on_one_rank.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/train/filled_schedule.h"
#include "plenum/train/run_directory.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/filled_run_fixture.h"

namespace plenum::train {
namespace {

using schedule::Schedule;
using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class SoapFilledRun : public FilledRunTest {
 protected:
  SoapFilledRun() : FilledRunTest(optim::OptimizerKind::Soap) {}

  /// Two replicas of two stages.
  RunOptions mesh_of_four(std::string_view name) const {
    RunOptions given = pipeline(name);
    given.run.ranks = given.run.threads.emplace(4);
    return given;
  }

  static Schedule schedule_of_file(const RunOptions& given) {
    return schedule::parse_schedule_text(io::read_file(given.run.schedule), given.run.schedule);
  }

  /// The first of the run's steps from this one on after which no refresh is under way.
  static std::uint64_t drained_from(std::uint64_t step, const Schedule& schedule) {
    const schedule::Refreshes refreshes(schedule);
    while (step < kStepsOfRun && !refreshes.is_drained(step)) ++step;
    return step;
  }

  /// The greatest difference from the losses of the steps that were just trained, as a share of these.
  double largest_difference(const std::vector<StepReport>& others) const {
    EXPECT_EQ(observer_.steps.size(), others.size());
    double largest = 0;
    for (std::size_t i = 0; i < std::min(others.size(), observer_.steps.size()); ++i) {
      const double loss = observer_.steps[i].outcome.loss();
      largest = std::max(largest, std::abs(others[i].outcome.loss() - loss) / loss);
    }
    return largest;
  }
};

TEST_F(SoapFilledRun, KilledOrStoppedAtAnyStepEndsWithTheBytesOfOneThatWasNot) {
  for (const bool has_replicas : {false, true}) {
    const std::string mesh = has_replicas ? "mesh " : "pipeline ";
    const RunOptions given = has_replicas ? mesh_of_four("unused") : pipeline("unused");
    const RunOptions whole = in_directory(with_file(given), mesh + "whole");
    run(whole);
    const Schedule schedule = schedule_of_file(whole);
    ASSERT_FALSE(schedule::Refreshes(schedule).is_drained(1));
    for (const std::uint64_t step : observer_.checkpoints) EXPECT_EQ(step, drained_from(step, schedule));
    for (std::uint64_t step = 1; step < kStepsOfRun; ++step) {
      SCOPED_TRACE(mesh + std::to_string(step));
      const RunOptions killed = in_directory(whole, mesh + "killed " + std::to_string(step));
      run_killed_after(killed, step);
      run(killed);
      expect_same_checkpoint(killed, whole);
      const RunOptions stopped = in_directory(whole, mesh + "stopped " + std::to_string(step));
      // The step after it carries the word.
      EXPECT_EQ(run_and_stop(stopped, step).step, drained_from(step + 1, schedule));
      run(stopped);
      expect_same_checkpoint(stopped, whole);
    }
  }
}

TEST_F(SoapFilledRun, IsEvaluatedAtTheEndOfACycle) {
  RunOptions given = with_file(pipeline("run"));
  given.evaluation.every = {4, optim::DurationUnit::Steps};
  run(given);
  const Schedule schedule = schedule_of_file(given);
  std::vector<std::uint64_t> steps;
  for (const auto& [step, evaluation] : observer_.evaluations) steps.push_back(step);
  EXPECT_THAT(steps, ElementsAre(drained_from(4, schedule), drained_from(8, schedule), kStepsOfRun));
  EXPECT_NE(drained_from(4, schedule), 4U) << "or nothing waits";
}

TEST_F(SoapFilledRun, OnOneRankGivesTheLossesOfThePipeline) {
  for (const bool has_replicas : {false, true}) {
    const std::string mesh = has_replicas ? "mesh" : "pipeline";
    SCOPED_TRACE(mesh);
    RunOptions given = has_replicas ? mesh_of_four(mesh) : pipeline(mesh);
    given.optimizer.learning_rate.warmup = {0, optim::DurationUnit::Steps};
    const RunOptions filled = with_file(given);
    run(filled);
    const std::vector<StepReport> expected = observer_.steps;
    const Schedule of_ranks = schedule_of_file(filled);
    RunOptions serial = alone(mesh + " serial");
    serial.data.micro_batches = static_cast<std::int64_t>(of_ranks.problem.num_micro_batches);
    serial.optimizer.learning_rate.warmup = {0, optim::DurationUnit::Steps};
    serial.run.schedule =
        directory_.write("serial.txt", schedule::print_schedule_text(schedule::on_one_rank(of_ranks)));
    run(serial);
    EXPECT_LT(largest_difference(expected), 2e-5);
    const RunOptions stopped = in_directory(serial, mesh + " stopped");
    run_and_stop(stopped, 4);
    run(stopped);
    expect_same_checkpoint(stopped, serial);
    // Another time of the refreshes shows in the losses, or the comparison above would say nothing.
    RunOptions seldom = in_directory(serial, mesh + " seldom");
    seldom.run.schedule.clear();
    run(seldom);
    EXPECT_GT(largest_difference(expected), 1e-4);
  }
}

// The last step lies in a cycle, whose copies of factors are gone when the run resumes.
TEST_F(SoapFilledRun, MadeLongerWithinACycleUsesNothingOfTheStepsBefore) {
  RunOptions given = with_file(pipeline("run", 7));
  run(given);
  const auto before = states_of(given, "soap.basis_");
  ASSERT_FALSE(before.empty());
  given.run.steps.amount = 9;
  run(given);
  EXPECT_TRUE(states_of(given, "soap.basis_") == before) << "no refresh ends before step 10";
  given.run.steps.amount = 13;
  run(given);
  EXPECT_FALSE(states_of(given, "soap.basis_") == before);
  for (const StepReport& step : observer_.steps) EXPECT_FALSE(step.outcome.is_skipped);
}

TEST_F(SoapFilledRun, MeasuresItsStepsFirstAndTrainsAsIfItHadNot) {
  for (const bool has_replicas : {false, true}) {
    const std::string name = has_replicas ? "mesh" : "pipeline";
    SCOPED_TRACE(name);
    const RunOptions given = has_replicas ? mesh_of_four(name) : pipeline(name);
    run(given);
    // Where the machine does something else meanwhile, there may seem to be no room.
    EXPECT_THAT(observer_.notes, Contains(AnyOf(HasSubstr("SOAP's work fills the bubbles: a refresh every"),
                                                HasSubstr("SOAP refreshes its bases outside bubbles"))));
    const std::string kept = RunPaths(given.run.directory).schedule;
    const Schedule filled = schedule::parse_schedule_text(io::read_file(kept), kept);
    EXPECT_TRUE(schedule::Refreshes(filled).is_drained(0));
    EXPECT_TRUE(is_filled_from(filled, plan_of(given)->plain_schedule()));
    RunOptions by_file = in_directory(given, name + " by file");
    by_file.run.schedule = directory_.write("copy.txt", io::read_file(kept));
    run(by_file);
    EXPECT_EQ(io::read_file(RunPaths(by_file.run.directory).schedule), io::read_file(kept));
    expect_same_checkpoint(by_file, given);
  }
}

TEST_F(SoapFilledRun, ResumesByTheScheduleThatItKeptAndMakesAnotherForAnotherMesh) {
  RunOptions given = pipeline("run", 400);
  run_and_stop(given, 1);
  const std::string path = RunPaths(given.run.directory).schedule;
  const Schedule filled = filled_of(plan_of(given)->plain_schedule(), {.drains = true}).schedule;
  directory_.write("run/schedule.txt", schedule::print_schedule_text(filled));
  run_and_stop(given, observer_.steps.back().step + 1);
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("SOAP's work is where")));
  EXPECT_EQ(io::read_file(path), schedule::print_schedule_text(filled));
  given.data.micro_batches = 3;
  run_and_stop(given, observer_.steps.back().step + 1);
  EXPECT_THAT(observer_.notes,
              Contains(HasSubstr("is of other steps than the run's now; a new one is made")));
  // Where there was no room the run goes on without, though there may be room now.
  const Schedule unfilled = plan_of(given)->schedule();
  directory_.write("run/schedule.txt", schedule::print_schedule_text(unfilled));
  run_and_stop(given, observer_.steps.back().step + 1);
  EXPECT_THAT(observer_.notes,
              Contains(AllOf(HasSubstr("SOAP refreshes its bases outside bubbles"), HasSubstr("has it"))));
  EXPECT_EQ(io::read_file(path), schedule::print_schedule_text(unfilled));
  given.run.ranks = given.run.pp = 1;
  run_and_stop(given, observer_.steps.back().step + 1);
  EXPECT_THAT(observer_.notes, Not(Contains(HasSubstr("bubbles"))));
}

TEST_F(SoapFilledRun, WithAnIntervalOrWithoutFillingRefreshesOutsideBubbles) {
  RunOptions every = pipeline("every");
  every.optimizer.optimizer.soap.every = 2;
  EXPECT_EQ(every.fill(), BubbleFill::Off);
  run(every);
  EXPECT_THAT(observer_.checkpoints, ElementsAre(2, 4, 6, 8, 10, 11));
  EXPECT_FALSE(io::path_exists(RunPaths(every.run.directory).schedule));
  RunOptions off = pipeline("off");
  off.run.fill = BubbleFill::Off;
  EXPECT_EQ(off.fill(), BubbleFill::Off);
  EXPECT_EQ(alone("alone").fill(), BubbleFill::Off);
  RunOptions automatic = pipeline("auto");
  EXPECT_EQ(automatic.fill(), BubbleFill::Deferred);
  automatic.run.device = tensor::Device::Cuda;
  EXPECT_EQ(automatic.fill(), BubbleFill::Off);
}

TEST_F(SoapFilledRun, RefusesWhatDoesNotGoTogether) {
  RunOptions given = pipeline("run");
  given.run.fill = BubbleFill::Deferred;
  EXPECT_NO_THROW(given.check());
  given.optimizer.optimizer.soap.every = 2;
  test::expect_user_error([&] { given.check(); }, "--soap-every does not go with --fill");
  given.optimizer.optimizer.soap.every.reset();
  given.run.device = tensor::Device::Cuda;
  test::expect_user_error([&] { given.check(); }, "in bubbles on the CPU alone so far");
  given.run.device = tensor::Device::Cpu;
  given.run.pp = 1;
  test::expect_user_error([&] { given.check(); }, "add --pp");
  given.run.pp = 2;
  given.run.fill = BubbleFill::Fresh;
  test::expect_user_error([&] { given.check(); }, "--fill fresh is for --optimizer kfac");
  RunOptions by_file = pipeline("run");
  by_file.run.schedule = "schedule.json";
  EXPECT_NO_THROW(by_file.check());
  by_file.run.fill = BubbleFill::Deferred;
  test::expect_user_error([&] { by_file.check(); }, "schedule.json says itself");
}

TEST_F(SoapFilledRun, RefusesAScheduleOfAnotherRun) {
  const RunOptions given = with_file(pipeline("run"));
  const auto refused = [&](const std::function<void(RunOptions&)>& change, const std::string& why) {
    RunOptions changed = given;
    change(changed);
    test::expect_user_error([&] { run(changed); }, why);
    EXPECT_FALSE(io::path_exists(changed.run.directory)) << why;
  };
  refused([](RunOptions& other) { other.optimizer.optimizer.kind = optim::OptimizerKind::AdamW; },
          "add --optimizer soap");
  refused([](RunOptions& other) { other.optimizer.optimizer.kind = optim::OptimizerKind::Kfac; },
          "has nothing of K-FAC");
  refused([](RunOptions& other) { other.optimizer.optimizer.soap.every = 5; }, "leave out --soap-every");
  const Schedule plain = plan_of(pipeline("run"))->plain_schedule();
  const auto of_schedule = [&](const Schedule& schedule) {
    return [&, text = schedule::print_schedule_text(schedule)](RunOptions& other) {
      other.run.schedule = directory_.write("other.txt", text);
    };
  };
  refused(of_schedule(filled_of(plain, {}).schedule), "waits at the end of every step");
  refused(of_schedule(schedule::with_periodic_refresh(plain, schedule::ShampooFiller(4, 1), 1)),
          "has 4 linear maps with factors in a layer, the model 6");
}

TEST_F(SoapFilledRun, ByAScheduleWithoutItsWorkRefreshesInTheUpdate) {
  RunOptions given = pipeline("plain");
  given.optimizer.optimizer.soap.every = 3;
  run(given);
  RunOptions by_file = in_directory(given, "by file");
  by_file.run.schedule =
      directory_.write("plain.txt", schedule::print_schedule_text(plan_of(given)->plain_schedule()));
  run(by_file);
  expect_same_checkpoint(by_file, given);
}

TEST_F(SoapFilledRun, KeepsNoMoreThanThereIsMemoryForAndRefreshesOutsideBubblesWhereThereIsNone) {
  const RunOptions given = pipeline("run");
  const Processes alone;
  const test::ConstantCosts costs = known_costs();
  const auto fill_with = [&](std::uint64_t more_bytes, const schedule::CostModel* known) {
    const std::unique_ptr<RunPlan> plan = plan_of(given);
    observer_ = RecordingObserver();
    fill_bubbles(*plan, {.options = given,
                         .processes = alone,
                         .observer = observer_,
                         .available_bytes = plan->memory().planned_bytes + more_bytes,
                         .costs = known});
    return plan->schedule();
  };
  const std::unique_ptr<RunPlan> unfilled = plan_of(given);
  EXPECT_EQ(fill_with(0, &costs), unfilled->schedule());
  EXPECT_THAT(observer_.notes, ElementsAre(HasSubstr("SOAP refreshes its bases outside bubbles, every 10 "
                                                     "steps (--soap-every)")));
  const std::uint64_t enough = std::uint64_t{1} << 30;
  const Schedule filled = fill_with(enough, &costs);
  EXPECT_NE(filled, unfilled->schedule());
  EXPECT_THAT(observer_.notes, ElementsAre(AllOf(HasSubstr("SOAP's work fills the bubbles"),
                                                 HasSubstr("bases"), HasSubstr("without SOAP;"))));
  const std::size_t needed =
      unfilled->bytes_with(filled, std::nullopt) - unfilled->bytes_with(unfilled->schedule(), std::nullopt);
  EXPECT_GT(needed, 0U);
  EXPECT_EQ(fill_with(needed, &costs), filled);
}

TEST_F(SoapFilledRun, LaysTheFirstStepOfALaterCycleOverItsPrediction) {
  RunOptions given = with_file(pipeline("run", 15));
  given.run.process.overlay = directory_ / "overlay.json";
  run(given);
  const nlohmann::json overlay = nlohmann::json::parse(io::read_file(given.run.process.overlay));
  EXPECT_THAT(overlay.at("title").get<std::string>(), HasSubstr("step 10"));
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("the time of 5 steps was predicted")));
}

}  // namespace
}  // namespace plenum::train
