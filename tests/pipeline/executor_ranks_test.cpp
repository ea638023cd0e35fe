// Ranks of one schedule in several executors, as in several processes.

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/comm/local/local_world.h"
#include "plenum/pipeline/executor.h"
#include "plenum/schedule/generate/generator.h"

#include "tests/pipeline/serial_reference.h"
#include "tests/pipeline/toy_program.h"

namespace plenum::pipeline {
namespace {

using namespace std::chrono_literals;
using schedule::kNumLanes;
using schedule::Lane;
using schedule::Rank;
using schedule::Schedule;

Schedule replicated_pipeline() {
  return schedule::generator_named("1f1b").generate(
      {.depth = 2, .num_micro_batches = 4, .num_replicas = 2, .stage_layers = {2}});
}

/// The toy programs of a schedule, and an executor for each part of its ranks.
class Parts {
 public:
  Parts(const Schedule& schedule, const std::vector<std::vector<std::size_t>>& parts,
        ExecutorOptions options = {})
      : dataflow_(schedule), world_(schedule.ranks.size()) {
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      programs_.push_back(std::make_unique<ToyProgram>(schedule, dataflow_, Rank::at(rank)));
    }
    for (const std::vector<std::size_t>& part : parts) {
      std::vector<LocalRank> ranks;
      for (const std::size_t rank : part) {
        ranks.push_back({Rank::at(rank), programs_[rank].get(), world_.communicator(Rank::at(rank))});
      }
      executors_.push_back(std::make_unique<Executor>(schedule, std::move(ranks), options));
    }
  }

  /// All at the same time. What each threw, or "no error".
  std::vector<std::string> run(std::uint64_t num_steps) {
    std::vector<std::string> errors(executors_.size(), "no error");
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < executors_.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          executors_[i]->run(num_steps);
        } catch (const ExecutionError& error) {
          errors[i] = error.what();
        }
      });
    }
    threads.clear();
    return errors;
  }

  comm::local::LocalWorld& world() { return world_; }
  Executor& executor(std::size_t part) { return *executors_[part]; }
  ToyProgram& program(std::size_t rank) { return *programs_[rank]; }

 private:
  schedule::Dataflow dataflow_;
  comm::local::LocalWorld world_;
  std::vector<std::unique_ptr<ToyProgram>> programs_;
  std::vector<std::unique_ptr<Executor>> executors_;
};

TEST(ExecutorOfSomeRanks, TrainsAsOneOfAllRanksDoes) {
  const Schedule schedule = replicated_pipeline();
  const SerialResult expected = train_serially(schedule, 4, 0);
  for (const auto& division : std::vector<std::vector<std::vector<std::size_t>>>{
           {{0}, {1}, {2}, {3}}, {{0, 3}, {1, 2}}, {{0, 1, 2}, {3}}}) {
    Parts parts(schedule, division);
    for (const std::string& error : parts.run(3)) EXPECT_EQ(error, "no error");
    for (const std::string& error : parts.run(1)) EXPECT_EQ(error, "no error");
    for (std::uint64_t step = 0; step < 4; ++step) {
      double loss = 0;
      for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
        const auto& losses = parts.program(rank).losses();
        if (const auto found = losses.find(step); found != losses.end()) loss += found->second;
      }
      EXPECT_NEAR(loss, expected.losses[step], 1e-12 * std::abs(expected.losses[step]));
    }
  }
}

TEST(ExecutorOfSomeRanks, MeasuresItsOwnRanks) {
  const Schedule schedule = replicated_pipeline();
  Parts parts(schedule, {{0, 3}, {1, 2}});
  parts.run(2);
  const MeasuredCycle cycle = parts.executor(0).measured();
  EXPECT_EQ(cycle.first_step, 1U);
  ASSERT_EQ(cycle.times.size(), schedule.ranks.size());
  double earliest = 1;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      const schedule::LaneTimes& times = cycle.times[rank][lane];
      ASSERT_EQ(times.size(), schedule.ranks[rank].lanes[lane].actions().size());
      for (const schedule::ActionTime& time : times) {
        EXPECT_LE(time.start, time.end);
        if (rank == 0 || rank == 3) earliest = std::min(earliest, time.start);
        EXPECT_TRUE(rank == 0 || rank == 3 || time.end == 0);
      }
    }
    const double last = cycle.times[rank][static_cast<std::size_t>(Lane::Compute)].back().end;
    EXPECT_EQ(last > 0, rank == 0 || rank == 3);
  }
  EXPECT_EQ(earliest, 0);
}

TEST(ExecutorOfSomeRanks, IsEndedByAnAbortElsewhere) {
  const Schedule schedule = replicated_pipeline();
  Parts parts(schedule, {{0, 1}}, {.hang_limit = 60s});
  const std::unique_ptr<comm::Communicator> elsewhere = parts.world().communicator(Rank{2});
  elsewhere->abort_all(Rank{2}, "the disk is full");
  EXPECT_THAT(parts.run(1), testing::ElementsAre(testing::EndsWith(": rank 2 failed: the disk is full")));
}

/// Notes the threads that call it.
class ThreadNotingProgram final : public StageProgram {
 public:
  void forward(const ActionRun&) override { note(); }
  void backward(const ActionRun&) override { note(); }
  void square_gradient(const ActionRun&) override { note(); }
  void update(const ActionRun&) override { note(); }
  comm::Elements to_reduce(const ActionRun&) override {
    note();
    return comm::elements_of(std::span(sum_));
  }
  void communicated(const ActionRun&) override {}

  std::size_t num_threads() const { return threads_.size(); }

 private:
  void note() {
    const std::lock_guard lock(mutex_);
    threads_.insert(std::this_thread::get_id());
  }

  std::vector<double> sum_ = {0.0};
  std::mutex mutex_;
  std::set<std::thread::id> threads_;
};

TEST(Executor, RunsALaneOnTheSameThreadInEveryRun) {
  const Schedule schedule = schedule::generator_named("single").generate({.stage_layers = {1}});
  ThreadNotingProgram program;
  Executor executor(schedule, local_ranks({&program}));
  std::vector<std::jthread> others;
  for (int i = 0; i < 4; ++i) {
    executor.run(2);
    others.emplace_back([] { std::this_thread::sleep_for(1ms); });  // so that no thread's id comes again
  }
  std::size_t num_lanes = 0;
  for (const schedule::LaneProgram& lane : schedule.ranks[0].lanes) num_lanes += !lane.actions().empty();
  EXPECT_EQ(program.num_threads(), num_lanes);
}

}  // namespace
}  // namespace plenum::pipeline
