#include "plenum/pipeline/executor.h"

#include <algorithm>
#include <atomic>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/timeline_of.h"

#include "tests/pipeline/toy_run.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/function_costs.h"

namespace plenum::pipeline {
namespace {

using namespace std::chrono_literals;
using schedule::Action;
using schedule::ActionTime;
using schedule::ActionType;
using schedule::generator_named;
using schedule::kNumLanes;
using schedule::Lane;
using schedule::Rank;
using schedule::Schedule;
using testing::AllOf;
using testing::HasSubstr;

Schedule small_pipeline(std::size_t num_replicas = 1) {
  return generator_named("1f1b").generate(
      {.depth = 2, .num_micro_batches = 2, .num_replicas = num_replicas, .stage_layers = {2}});
}

/// A cycle of several steps with work in all lanes but copy.
Schedule filled_chimera() {
  const Schedule base = generator_named("chimera").generate(
      {.depth = 4, .num_micro_batches = 4, .stage_layers = {1}, .has_tied_parameters = true});
  return schedule::fill(base, schedule::KfacFiller(2), test::FunctionCosts(&toy_seconds)).schedule;
}

ExecutorOptions unchecked(std::chrono::milliseconds hang_limit = 60s) {
  return {.checked = ExecutorOptions::Checked::No, .hang_limit = hang_limit};
}

/// The same schedule with the actions of a lane changed.
Schedule with_lane(const Schedule& schedule, Rank rank, Lane lane,
                   const std::function<void(std::vector<Action>&)>& change) {
  Schedule changed = schedule;
  schedule::LaneProgram& program = changed.ranks[rank.index()].lane(lane);
  schedule::LaneProgram rebuilt;
  for (std::size_t step = 0; step < program.num_steps(); ++step) {
    std::vector<Action> actions(program.step(step).begin(), program.step(step).end());
    change(actions);
    for (const Action& action : actions) rebuilt.append(action);
    rebuilt.end_step();
  }
  program = rebuilt;
  return changed;
}

/// A toy program that does something else when it comes to one action.
class FaultyProgram final : public ToyProgram {
 public:
  using Fault = std::function<void(const ActionRun&)>;
  FaultyProgram(const Schedule& schedule, const schedule::Dataflow& dataflow, Rank rank, Fault fault)
      : ToyProgram(schedule, dataflow, rank), fault_(std::move(fault)) {}

  void backward(const ActionRun& run) override {
    fault_(run);
    ToyProgram::backward(run);
  }
  void communicated(const ActionRun& run) override {
    fault_(run);
    ToyProgram::communicated(run);
  }

 private:
  Fault fault_;
};

/// Rank 1 has a fault.
ToyRun::MakeProgram faulty_rank_one(FaultyProgram::Fault fault) {
  return [fault = std::move(fault)](const Schedule& schedule, const schedule::Dataflow& dataflow,
                                    Rank rank) -> std::unique_ptr<ToyProgram> {
    if (rank != Rank{1}) return std::make_unique<ToyProgram>(schedule, dataflow, rank);
    return std::make_unique<FaultyProgram>(schedule, dataflow, rank, fault);
  };
}

std::string error_of(Executor& executor, std::uint64_t num_steps) {
  try {
    executor.run(num_steps);
  } catch (const ExecutionError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Executor, GivesTheSameBytesTwice) {
  for (const Schedule& schedule : {filled_chimera(), small_pipeline(3)}) {
    ToyRun first(schedule);
    ToyRun second(schedule);
    first.executor().run(6);
    second.executor().run(6);
    EXPECT_EQ(first.everything(), second.everything());
  }
}

TEST(Executor, RunsOnWhereItStopped) {
  const Schedule schedule = filled_chimera();
  ToyRun whole(schedule);
  whole.executor().run(7);
  ToyRun parts(schedule);
  for (const std::uint64_t num_steps : {1, 4, 0, 2}) parts.executor().run(num_steps);
  EXPECT_EQ(parts.executor().next_step(), 7u);
  EXPECT_EQ(whole.everything(), parts.everything());
}

TEST(Executor, ExchangesDataAStepAhead) {
  Schedule schedule = small_pipeline();
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    schedule = with_lane(schedule, Rank::at(rank), Lane::Copy, [](std::vector<Action>& actions) {
      actions.push_back({.type = ActionType::ExchangeData});
    });
  }
  EXPECT_EQ(difference_from_serial(schedule, 5), "");
}

TEST(Executor, BeginsAtAnyStep) {
  const Schedule schedule = filled_chimera();
  for (std::uint64_t place = 0; place < schedule.num_steps(); ++place) {
    const std::uint64_t first_step = 1000 * schedule.num_steps() + place;
    EXPECT_EQ(difference_from_serial(schedule, 2 * schedule.num_steps(), {.first_step = first_step}), "");
  }
}

TEST(Executor, RefusesAScheduleThatCheckRefuses) {
  const Schedule damaged =
      with_lane(small_pipeline(), {1}, Lane::Pipeline, [](auto& actions) { actions.pop_back(); });
  test::expect_user_error([&] { ToyRun toy(damaged); }, "SB1.1");
}

TEST(Executor, ShowsDamageThatNobodyChecked) {
  const Schedule pipeline = small_pipeline(2);
  const auto swap_first_two = [](auto& actions) { std::swap(actions[0], actions[1]); };
  const auto remove_first = [](auto& actions) { actions.erase(actions.begin()); };
  const auto repeat_first = [](auto& actions) { actions.insert(actions.begin(), actions.front()); };
  // A machine that is merely slow must not pass for damage: what stalls gets many times as long as a run
  // takes.
  const auto expect_damage = [](const Schedule& damaged, std::uint64_t num_steps = 3) {
    EXPECT_NE(difference_from_serial(damaged, num_steps, unchecked(1s)), "");
  };
  expect_damage(with_lane(pipeline, {0}, Lane::Compute, remove_first));
  expect_damage(with_lane(pipeline, {1}, Lane::Compute, swap_first_two));
  expect_damage(with_lane(pipeline, {1}, Lane::Compute, repeat_first));
  expect_damage(with_lane(pipeline, {2}, Lane::DataParallel, swap_first_two));
  expect_damage(with_lane(pipeline, {2}, Lane::DataParallel, remove_first));
  expect_damage(with_lane(pipeline, {3}, Lane::Pipeline, repeat_first));
  const auto older = [](auto& actions) {
    for (Action& action : actions) action.age += action.type == ActionType::Precondition;
  };
  Schedule stale = filled_chimera();
  ++stale.problem.staleness;
  for (std::size_t rank = 0; rank < stale.ranks.size(); ++rank) {
    stale = with_lane(stale, Rank::at(rank), Lane::Compute, older);
  }
  // All agree on an age that no inverse has.
  expect_damage(stale, 2 * stale.num_steps());
}

TEST(Executor, NamesTheActionThatThrows) {
  const Schedule schedule = small_pipeline(2);
  ToyRun toy(schedule, {}, faulty_rank_one([](const ActionRun& run) {
               base::require(run.step != 2 || run.action.type != ActionType::Backward, "the disk is full");
             }));
  try {
    toy.executor().run(5);
    FAIL() << "nothing was thrown";
  } catch (const ExecutionError& error) {
    EXPECT_STREQ(error.what(), "rank 1, compute, step 2, B1.0: the disk is full");
    EXPECT_EQ(error.failure().rank, Rank{1});
    EXPECT_THROW(std::rethrow_exception(error.failure().cause), base::UserError);
  }
  EXPECT_THROW(toy.executor().run(1), base::InternalError);
}

TEST(Executor, NamesTheCommunicationThatThrows) {
  const Schedule schedule = small_pipeline(2);
  ToyRun toy(schedule, {}, faulty_rank_one([](const ActionRun& run) {
               if (run.action.type == ActionType::ReduceGradient) throw 7;
             }));
  EXPECT_EQ(error_of(toy.executor(), 1), "rank 1, data, step 0, AR1: something that is no std::exception");
}

TEST(Executor, NamesTheActionThatHangsAndWhatTheOthersWaitFor) {
  const Schedule schedule = small_pipeline();
  std::vector<std::string> told;
  ToyRun toy(
      schedule,
      {.hang_limit = 50ms, .on_failure = [&](const Failure& failure) { told.push_back(failure.action); }},
      faulty_rank_one([](const ActionRun& run) {
        while (run.action.type == ActionType::Backward && !run.stop.stop_requested()) {
          std::this_thread::sleep_for(1ms);
        }
      }));
  EXPECT_THAT(error_of(toy.executor(), 1),
              AllOf(HasSubstr("rank 1, compute, step 0, B1.0: hangs: it has not ended for 50 ms"),
                    HasSubstr("rank 0, pipe, step 0, RB0.0 waits for the message of rank 1")));
  EXPECT_THAT(told, testing::ElementsAre("B1.0"));
}

TEST(Executor, ReportsAnActionThatDoesNotListen) {
  const Schedule schedule = small_pipeline();
  std::atomic<bool> is_released = false;
  ToyRun toy(schedule, {.hang_limit = 50ms, .stop_limit = 20ms}, faulty_rank_one([&](const ActionRun& run) {
               while (run.action.type == ActionType::Backward && !is_released) {
                 std::this_thread::sleep_for(1ms);
               }
             }));
  EXPECT_THAT(error_of(toy.executor(), 1), HasSubstr("rank 1, compute, step 0, B1.0: hangs"));
  is_released = true;
}

TEST(Executor, NamesWhatAllWaitFor) {
  const Schedule damaged =
      with_lane(small_pipeline(), {1}, Lane::Pipeline, [](auto& actions) { actions.erase(actions.begin()); });
  ToyRun toy(damaged, unchecked(50ms));
  EXPECT_THAT(error_of(toy.executor(), 1),
              AllOf(testing::StartsWith("rank 0, pipe, step 0, RB0.0: waits for the message of rank 1"),
                    HasSubstr("no rank has got on for 50 ms"),
                    HasSubstr("F1.0 waits for the input of stage 1 for micro-batch 0")));
}

TEST(Executor, MeasuresEveryActionOfTheLastCycle) {
  const Schedule schedule = filled_chimera();
  ToyRun toy(schedule);
  toy.executor().run(2 * schedule.num_steps() + 1);
  const MeasuredCycle& cycle = toy.executor().measured();
  EXPECT_EQ(cycle.first_step, schedule.num_steps());
  ASSERT_EQ(cycle.times.size(), schedule.ranks.size());
  EXPECT_EQ(cycle.clock_offset_seconds, Values(schedule.ranks.size(), 0.0));
  double earliest = 1;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      const schedule::LaneTimes& times = cycle.times[rank][lane];
      ASSERT_EQ(times.size(), schedule.ranks[rank].lanes[lane].actions().size());
      double free = 0;
      for (const ActionTime& time : times) {
        EXPECT_LE(free, time.start);
        EXPECT_LE(time.start, time.end);
        free = time.end;
        earliest = std::min(earliest, time.start);
      }
    }
  }
  EXPECT_EQ(earliest, 0);
  const trace::Timeline timeline = schedule::timeline_of(schedule, cycle.times, "measured");
  EXPECT_EQ(timeline.spans.size(), schedule.num_actions());
}

TEST(Executor, MeasuresCollectivesFromWhenTheLastCame) {
  const Schedule schedule = small_pipeline(2);
  ToyRun toy(schedule);
  toy.executor().run(3);
  const std::vector<schedule::RankTimes>& times = toy.executor().measured().times;
  const auto data = static_cast<std::size_t>(Lane::DataParallel);
  const std::size_t last = times[0][data].size() - 1;  // all ranks agree
  for (std::size_t rank = 1; rank < times.size(); ++rank) {
    EXPECT_EQ(times[rank][data].back().start, times[0][data][last].start);
  }
}

}  // namespace
}  // namespace plenum::pipeline
