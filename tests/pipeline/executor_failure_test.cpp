// What ends a run besides an action that throws: aborts, exchanges, threads that do not start.

#include <cstdio>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "plenum/comm/local/local_world.h"
#include "plenum/pipeline/executor.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/text/parse_schedule.h"

namespace plenum::pipeline {
namespace {

using namespace std::chrono_literals;
using comm::Communicator;
using schedule::Rank;
using schedule::Schedule;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// Two replicas that exchange data.
Schedule two_ranks() {
  return schedule::parse_schedule(R"(plenum-schedule 1
layers 1
micro-batches 2
rank 0 holds 0
rank 1 holds 0
0 compute: F0.0 B0.0 NS0 U0
0 data: AR0 N
0 copy: X
1 compute: F0.1 B0.1 NS0 U0
1 data: AR0 N
1 copy: X
)",
                                  "two ranks");
}

/// Computes nothing; a test says what forwards and exchanges do.
class IdleProgram final : public StageProgram {
 public:
  using Forward = std::function<void(const ActionRun&)>;
  using Exchange = std::function<void(const ActionRun&, Communicator&)>;

  Forward on_forward = [](const ActionRun&) {};
  Exchange on_exchange = [](const ActionRun& run, Communicator& ranks) {
    ranks.start_barrier(run.step).wait();
  };

  void forward(const ActionRun& run) override { on_forward(run); }
  void backward(const ActionRun&) override {}
  void square_gradient(const ActionRun&) override {}
  void update(const ActionRun&) override {}
  comm::Elements to_reduce(const ActionRun&) override { return comm::elements_of(std::span(sum_)); }
  PartitionedElements to_partition(const ActionRun&) override {
    return {comm::elements_of(std::span(sum_)), counts_};
  }
  void communicated(const ActionRun&) override {}
  void exchange_data(const ActionRun& run, Communicator& ranks) override { on_exchange(run, ranks); }

 private:
  std::vector<double> sum_ = {0.0};
  std::vector<std::size_t> counts_ = {1, 1};  ///< more than there is
};

/// What run() throws, or "no error".
std::string error_of(Executor& executor, std::uint64_t num_steps = 5) {
  try {
    executor.run(num_steps);
  } catch (const ExecutionError& error) {
    return error.what();
  }
  return "no error";
}

/// The error of two ranks of which the second exchanges data in a way of its own.
std::string error_with_exchange(const IdleProgram::Exchange& of_rank_one) {
  const Schedule schedule = two_ranks();
  IdleProgram first;
  IdleProgram second;
  second.on_exchange = of_rank_one;
  Executor executor(schedule, local_ranks({&first, &second}), {.hang_limit = 200ms});
  return error_of(executor);
}

TEST(Executor, SaysWhoAbortedAndWhy) {
  // Which of its lanes is told of it first depends on where they are.
  EXPECT_THAT(error_with_exchange([](const ActionRun& run, Communicator& ranks) {
                if (run.step == 2) ranks.abort_all(ranks.rank_of(1), "my data differ");
                ranks.start_barrier(run.step).wait();
              }),
              AllOf(StartsWith("rank 1, "), EndsWith(": rank 1 failed: my data differ")));
}

TEST(Executor, SaysSoWhereOnlyOthersNoticeAnAbort) {
  EXPECT_THAT(error_with_exchange([](const ActionRun& run, Communicator& ranks) {
                ranks.abort_all(ranks.rank_of(1), "my data differ");
                while (!run.stop.stop_requested()) std::this_thread::sleep_for(1ms);
              }),
              HasSubstr("rank 1 failed: my data differ"));
}

TEST(Executor, NamesTheRankThatHangsInAnExchange) {
  EXPECT_THAT(
      error_with_exchange([](const ActionRun& run, Communicator&) {
        while (!run.stop.stop_requested()) std::this_thread::sleep_for(1ms);
      }),
      AllOf(StartsWith("rank 1, copy, step 0, X: hangs"), HasSubstr("rank 0, copy, step 0, X waits")));
}

TEST(Executor, TakesARankThatAsksAgainAndAgainForOneThatWaits) {
  EXPECT_THAT(error_with_exchange([](const ActionRun&, Communicator& ranks) {
                double value = 0;
                comm::Completion never = ranks.start_receive(0, 9, comm::elements_of(std::span(&value, 1)));
                while (!never.test()) std::this_thread::yield();
              }),
              HasSubstr("no rank has got on for 200 ms"));
}

TEST(Executor, LetsAnErrorOutOfACommunicationThatHasBegun) {
  EXPECT_EQ(error_with_exchange([](const ActionRun&, Communicator& ranks) {
              double value = 0;
              const comm::Completion begun =
                  ranks.start_receive(0, 9, comm::elements_of(std::span(&value, 1)));
              throw std::runtime_error("the disk is full");
            }),
            "rank 1, copy, step 0, X: the disk is full");
  EXPECT_EQ(error_with_exchange([](const ActionRun& run, Communicator& ranks) {
              const comm::Completion begun = ranks.start_barrier(run.step);
              throw std::runtime_error("the disk is full");
            }),
            "rank 1, copy, step 0, X: the disk is full");
}

TEST(Executor, AbortsCommunicatorsThatAProgramHasOfItsOwn) {
  const Schedule schedule = two_ranks();
  comm::local::LocalWorld world(2);
  std::unique_ptr<Communicator> of_first = world.communicator({0});
  const std::unique_ptr<Communicator> own = of_first->group(std::vector<std::size_t>{0});
  IdleProgram first;
  first.on_forward = [&](const ActionRun&) { own->start_receive(0, 1, {}).wait(); };  // which nobody sends
  IdleProgram second;
  second.on_forward = [](const ActionRun&) { throw std::runtime_error("the disk is full"); };
  std::vector<LocalRank> ranks;
  ranks.push_back({Rank{0}, &first, std::move(of_first)});
  ranks.push_back({Rank{1}, &second, world.communicator({1})});
  Executor executor(schedule, std::move(ranks));
  EXPECT_EQ(error_of(executor), "rank 1, compute, step 0, F0.1: the disk is full");
}

/// Ranks of two, each with the communicator of a rank.
std::vector<LocalRank> ranks_with(IdleProgram& program, std::span<const std::pair<Rank, Rank>> pairs) {
  comm::local::LocalWorld world(2);
  std::vector<LocalRank> ranks;
  for (const auto& [rank, of] : pairs) ranks.push_back({rank, &program, world.communicator(of)});
  return ranks;
}

TEST(Executor, RefusesRanksThatAreNotInOrderOrHaveOthersCommunicators) {
  const Schedule schedule = two_ranks();
  IdleProgram program;
  const auto make = [&](std::vector<std::pair<Rank, Rank>> pairs) {
    Executor executor(schedule, ranks_with(program, pairs));
  };
  EXPECT_NO_THROW(make({{Rank{0}, Rank{0}}, {Rank{1}, Rank{1}}}));
  EXPECT_NO_THROW(make({{Rank{1}, Rank{1}}}));
  EXPECT_THROW(make({}), base::InternalError);
  EXPECT_THROW(make({{Rank{1}, Rank{1}}, {Rank{0}, Rank{0}}}), base::InternalError);
  EXPECT_THROW(make({{Rank{0}, Rank{1}}}), base::InternalError);
}

TEST(Executor, RefusesPartsThatExceedTheirBuffer) {
  const Schedule schedule =
      schedule::generator_named("data-parallel")
          .generate({.num_replicas = 2, .stage_layers = {1}, .sharding = schedule::Sharding::Optimizer});
  IdleProgram first;
  IdleProgram second;
  Executor executor(schedule, local_ranks({&first, &second}));
  EXPECT_THAT(error_of(executor), HasSubstr("the parts must make up the buffer: 2 of 1 elements"));
}

TEST(Executor, NamesAnActionThatTheProgramLacks) {
  const Schedule schedule = schedule::generator_named("1f1b").generate({.depth = 2, .stage_layers = {1}});
  IdleProgram first;
  IdleProgram second;
  Executor executor(schedule, local_ranks({&first, &second}));
  EXPECT_THAT(error_of(executor), HasSubstr("this program has no action "));
}

/// Trains with a rank whose forward never returns, and ends as who is told of that.
[[noreturn]] void run_with_an_action_that_never_returns() {
  const Schedule schedule = two_ranks();
  IdleProgram first;
  IdleProgram second;
  second.on_forward = [](const ActionRun& run) {
    while (run.step == 1) ::pause();
  };
  Executor executor(schedule, local_ranks({&first, &second}),
                    {.hang_limit = 100ms, .stop_limit = 20ms, .on_stuck = [](const Failure& failure) {
                       fmt::print(stderr, "{}\n", failure_text(failure));
                       _exit(75);
                     }});
  executor.run(5);
  _exit(0);
}

TEST(ExecutorDeathTest, TellsOfAnActionThatNeverReturns) {
  EXPECT_EXIT(run_with_an_action_that_never_returns(), testing::ExitedWithCode(75),
              "rank 1, compute, step 1, F0.1: hangs: it has not ended for 100 ms; rank 0, .* waits for ");
}

TEST(Executor, TellsOnlyWhatCannotBeEnded) {
  const Schedule schedule = two_ranks();
  IdleProgram first;
  IdleProgram second;
  second.on_forward = [](const ActionRun& run) {
    while (!run.stop.stop_requested()) std::this_thread::sleep_for(1ms);
  };
  bool is_stuck = false;
  Executor executor(
      schedule, local_ranks({&first, &second}),
      {.hang_limit = 100ms, .stop_limit = 60s, .on_stuck = [&](const Failure&) { is_stuck = true; }});
  EXPECT_THAT(error_of(executor), HasSubstr("hangs"));
  EXPECT_FALSE(is_stuck);
}

/// Runs more lanes than there is room for, in a process of its own. Exits with 0 if the error says so.
[[noreturn]] void run_without_room_for_threads() {
  const Schedule schedule =
      schedule::generator_named("data-parallel").generate({.num_replicas = 400, .stage_layers = {1}});
  std::vector<IdleProgram> programs(schedule.ranks.size());
  std::vector<StageProgram*> borrowed;
  for (IdleProgram& program : programs) borrowed.push_back(&program);
  std::string error;
  {
    Executor executor(schedule, local_ranks(borrowed));
    std::size_t num_pages = 0;
    std::ifstream("/proc/self/statm") >> num_pages;
    const rlim_t most = num_pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{128} << 20);
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
    error = error_of(executor);
  }
  const bool is_right =
      testing::Value(error, AllOf(HasSubstr("cannot start its thread, "), HasSubstr(" of 800 are started")));
  if (!is_right) fmt::print(stderr, "{}\n", error);
  _exit(is_right ? 0 : 1);
}

TEST(ExecutorDeathTest, SaysHowManyThreadsItWanted) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need all the address space";
#endif
  EXPECT_EXIT(run_without_room_for_threads(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace plenum::pipeline
