// Programs whose work is issued into queues of a device and done later.

#include <atomic>
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/comm/local/local_world.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/text/parse_schedule.h"

#include "tests/pipeline/device_toy.h"
#include "tests/pipeline/toy_run.h"
#include "tests/support/function_costs.h"

namespace plenum::pipeline {
namespace {

using namespace std::chrono_literals;
using schedule::Generator;
using schedule::Lane;
using schedule::Rank;
using schedule::Schedule;
using testing::HasSubstr;
using testing::StartsWith;

ToyRun::Communicators queued_ranks(std::size_t num_ranks) {
  comm::local::LocalWorld world(num_ranks);
  ToyRun::Communicators communicators;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    communicators.push_back(std::make_unique<QueuedCommunicator>(world.communicator(Rank::at(rank))));
  }
  return communicators;
}

/// Rank 0 has these queues, the others have queues without faults.
ToyRun::MakeProgram on_devices(DeviceToyProgram::Queues queues) {
  return [queues](const Schedule& schedule, const schedule::Dataflow& dataflow, Rank rank) {
    DeviceToyProgram::Queues own{.has_messages = queues.has_messages};
    return std::make_unique<DeviceToyProgram>(schedule, dataflow, rank, rank == Rank{0} ? queues : own);
  };
}

/// What difference_from_serial() gives, or what a device met.
std::string difference_on_devices(const Schedule& schedule, std::uint64_t num_steps,
                                  DeviceToyProgram::Queues queues) {
  try {
    return difference_from_serial(schedule, num_steps, {.hang_limit = 60s},
                                  queued_ranks(schedule.ranks.size()), on_devices(queues));
  } catch (const base::InternalError& error) {
    return error.what();
  }
}

Schedule small_pipeline() {
  return schedule::generator_named("1f1b").generate(
      {.depth = 2, .num_micro_batches = 4, .stage_layers = {1}, .has_tied_parameters = true});
}

class GeneratorsOnDevices : public testing::TestWithParam<std::string> {};

TEST_P(GeneratorsOnDevices, ComputeWhatTheSerialLoopsDo) {
  const Generator& generator = schedule::generator_named(GetParam());
  schedule::GeneratorOptions options{.depth = 4, .num_micro_batches = 4, .stage_layers = {2}};
  if (!generator.is_pipeline()) options = {.num_micro_batches = 4, .stage_layers = {2}};
  options.num_replicas = generator.name == "single" ? 1 : 2;
  options.has_tied_parameters = true;
  const Schedule schedule = generator.generate(options);
  for (const bool has_messages : {false, true}) {
    SCOPED_TRACE(testing::Message() << "messages in queues: " << has_messages);
    EXPECT_EQ(difference_on_devices(schedule, 4, {.has_messages = has_messages}), "");
  }
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Generator& generator : schedule::all_generators()) names.emplace_back(generator.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, GeneratorsOnDevices, testing::ValuesIn(all_names()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

TEST(ExecutorOnDevices, ReadsWhatOlderStepsMade) {
  const Schedule base = schedule::generator_named("chimera").generate(
      {.depth = 4, .num_micro_batches = 4, .stage_layers = {1}, .has_tied_parameters = true});
  const schedule::FillResult filled =
      schedule::fill(base, schedule::KfacFiller(2), test::FunctionCosts(&toy_seconds));
  const std::size_t num_steps = 2 * filled.schedule.num_steps() + filled.max_age;
  EXPECT_EQ(difference_on_devices(filled.schedule, num_steps, {}), "");
}

TEST(ExecutorOnDevices, GoesWrongWhereAQueueDoesNotWait) {
  const Schedule schedule = small_pipeline();
  // The one that does not wait comes too early, since the other is slow.
  EXPECT_EQ(difference_on_devices(schedule, 2, {.compute = {.delay = 10ms}}), "");
  EXPECT_NE(
      difference_on_devices(schedule, 2, {.compute = {.delay = 10ms}, .messages = {.ignores_waits = true}}),
      "");
  EXPECT_EQ(difference_on_devices(schedule, 2, {.messages = {.delay = 10ms}}), "");
  EXPECT_NE(
      difference_on_devices(schedule, 2, {.compute = {.ignores_waits = true}, .messages = {.delay = 10ms}}),
      "");
}

/// One rank that computes and exchanges data, each in a queue of its own.
Schedule exchanging_rank() {
  return schedule::parse_schedule(R"(plenum-schedule 1
layers 1
micro-batches 1
rank 0 holds 0
0 compute: F0.0 B0.0 NS0 U0
0 data: N
0 copy: X
)",
                                  "one rank");
}

/// Does in its queues what a test says.
class QueueProgram final : public StageProgram {
 public:
  using Work = std::function<void(const ActionRun&)>;
  Work on_forward = [](const ActionRun&) {};
  Work on_update = [](const ActionRun&) {};
  Work on_exchange = [](const ActionRun&) {};
  std::function<void()> on_reduce = [] {};
  bool has_data_queue = false;  ///< or that lane is of the host

  const tensor::WorkQueue* queue(Lane lane) override {
    if (lane == Lane::Compute) return &compute_;
    if (lane == Lane::Copy) return &copy_;
    return lane == Lane::DataParallel && has_data_queue ? &data_ : nullptr;
  }
  void forward(const ActionRun& run) override { put(compute_, run, on_forward); }
  void backward(const ActionRun&) override {}
  void square_gradient(const ActionRun&) override {}
  void update(const ActionRun& run) override { put(compute_, run, on_update); }
  void exchange_data(const ActionRun& run, comm::Communicator&) override { put(copy_, run, on_exchange); }
  comm::Elements to_reduce(const ActionRun&) override {
    on_reduce();
    return comm::elements_of(std::span(sum_));
  }
  void communicated(const ActionRun&) override {}

 private:
  void put(const tensor::ThreadQueue& queue, const ActionRun& run, const Work& work) {
    queue.put_beside([run, work] { work(run); });
  }

  std::vector<double> sum_ = {0.0};
  tensor::ThreadDevice device_;
  tensor::ThreadQueue compute_{device_};
  tensor::ThreadQueue copy_{device_};
  tensor::ThreadQueue data_{device_};
};

/// Lets what waits for it go on when a test ends, however it does.
struct Release {
  std::atomic<bool>& may_end;
  ~Release() { may_end = true; }
};

TEST(ExecutorOnDevices, KeepsQueuesWithinTwoSteps) {
  const Schedule schedule = exchanging_rank();
  std::atomic<std::uint64_t> num_updated = 0;
  std::atomic<bool> is_too_early = false;
  QueueProgram program;
  program.on_update = [&](const ActionRun&) {
    std::this_thread::sleep_for(5ms);
    ++num_updated;
  };
  program.on_exchange = [&](const ActionRun& run) {
    if (run.step >= 2 && num_updated < run.step - 1) is_too_early = true;
  };
  Executor executor(schedule, local_ranks({&program}), {.checked = ExecutorOptions::Checked::No});
  executor.run(6);
  executor.await_step(5);
  EXPECT_EQ(num_updated, 6U);
  EXPECT_FALSE(is_too_early);
}

TEST(ExecutorOnDevices, ReturnsBeforeADeviceIsDone) {
  const Schedule schedule = exchanging_rank();
  std::atomic<bool> may_end = false;
  std::atomic<bool> has_ended = false;
  QueueProgram program;
  program.on_update = [&](const ActionRun&) {
    while (!may_end) std::this_thread::yield();
    has_ended = true;
  };
  Executor executor(schedule, local_ranks({&program}), {.checked = ExecutorOptions::Checked::No});
  executor.run(1);
  EXPECT_FALSE(has_ended);
  may_end = true;
  executor.await_step(0);
  EXPECT_TRUE(has_ended);
}

TEST(ExecutorOnDevices, NamesTheActionAtWhichADeviceHangs) {
  const Schedule schedule = exchanging_rank();
  std::atomic<bool> may_end = false;
  QueueProgram program;
  const Release release{may_end};
  program.on_forward = [&](const ActionRun& run) {
    while (run.step == 1 && !may_end) std::this_thread::sleep_for(1ms);
  };
  std::vector<std::string> stuck;
  Executor executor(schedule, local_ranks({&program}),
                    {.checked = ExecutorOptions::Checked::No,
                     .hang_limit = 100ms,
                     .on_stuck = [&](const Failure& failure) { stuck.push_back(failure.action); }});
  executor.run(1);
  EXPECT_NO_THROW(executor.await_step(0));
  try {
    executor.run(1);  // where the data lane waits for the device
    ADD_FAILURE() << "nothing was thrown";
  } catch (const ExecutionError& error) {
    EXPECT_TRUE(error.failure().is_hang);
    EXPECT_THAT(error.what(),
                AllOf(StartsWith("rank 0, data, step 1, N: waits for its device"), HasSubstr("100 ms")));
  }
  EXPECT_THAT(stuck, testing::ElementsAre("N"));  // lanes could be ended, the device not
}

TEST(ExecutorOnDevices, NamesTheActionThatAStepIsHeldUpBy) {
  const Schedule schedule = exchanging_rank();
  std::atomic<bool> may_end = false;
  QueueProgram program;
  program.has_data_queue = true;
  const Release release{may_end};
  program.on_forward = [&](const ActionRun&) {
    while (!may_end) std::this_thread::sleep_for(1ms);
  };
  std::vector<std::string> stuck;
  Executor executor(schedule, local_ranks({&program}),
                    {.checked = ExecutorOptions::Checked::No,
                     .hang_limit = 100ms,
                     .on_stuck = [&](const Failure& failure) { stuck.push_back(failure.action); }});
  executor.run(1);
  EXPECT_THAT([&] { executor.await_step(0); },
              testing::ThrowsMessage<ExecutionError>(StartsWith(
                  "rank 0, compute, step 0, F0.0: hangs: it was issued, and the device has not done it")));
  EXPECT_THAT(stuck, testing::ElementsAre("F0.0"));
}

TEST(ExecutorOnDevices, TellsWhatWentWrongOnADevice) {
  const Schedule schedule = exchanging_rank();
  QueueProgram program;
  program.on_forward = [](const ActionRun&) { base::fail("the device broke down"); };
  Executor executor(schedule, local_ranks({&program}), {.checked = ExecutorOptions::Checked::No});
  EXPECT_THAT([&] { executor.run(1); },
              testing::ThrowsMessage<ExecutionError>(HasSubstr("the device broke down")));
}

TEST(ExecutorOnDevices, NoticesADeviceThatBreaksDownWhileAllLanesWait) {
  const Schedule schedule = exchanging_rank();
  comm::local::LocalWorld world(1);
  const std::unique_ptr<comm::Communicator> own = world.communicator({0});
  std::atomic<bool> is_waiting = false;
  QueueProgram program;
  program.on_reduce = [&] {
    is_waiting = true;
    own->start_receive(0, 1, {}).wait();  // which nobody sends
  };
  program.on_exchange = [&](const ActionRun&) {
    while (!is_waiting) std::this_thread::yield();
    base::fail("the device broke down");
  };
  std::vector<LocalRank> ranks;
  ranks.push_back({Rank{0}, &program, world.communicator({0})});
  Executor executor(schedule, std::move(ranks), {.checked = ExecutorOptions::Checked::No, .hang_limit = 60s});
  EXPECT_THAT([&] { executor.run(1); },
              testing::ThrowsMessage<ExecutionError>(HasSubstr("the device broke down")));
}

TEST(ExecutorOnDevices, TakesTimesFromTheDevice) {
  const Schedule schedule = small_pipeline();
  ToyRun toy(schedule, {}, on_devices({}), queued_ranks(schedule.ranks.size()));
  const auto compute = static_cast<std::size_t>(Lane::Compute);
  const auto pipe = static_cast<std::size_t>(Lane::Pipeline);
  toy.executor().run(2);
  for (const schedule::RankTimes& times : toy.executor().measured().times) {
    for (const schedule::ActionTime& time : times[compute]) EXPECT_EQ(time.start, time.end);
  }
  toy.executor().run(2, DeviceTimes::Recorded);
  const MeasuredCycle cycle = toy.executor().measured();
  EXPECT_EQ(cycle.first_step, 3U);
  for (const schedule::RankTimes& times : cycle.times) {
    double free = 0;
    for (const schedule::ActionTime& time : times[compute]) {
      EXPECT_LE(free, time.start);
      EXPECT_LT(time.start, time.end);
      free = time.end;
    }
  }
  // The first message leaves when what it carries is made, and what reads it begins when it has come.
  EXPECT_LE(cycle.times[0][compute].front().end, cycle.times[0][pipe].front().start);
  EXPECT_LE(cycle.times[1][pipe].front().end, cycle.times[1][compute].front().start);
  toy.executor().run(1);
  for (const schedule::RankTimes& times : toy.executor().measured().times) {
    for (const schedule::ActionTime& time : times[compute]) EXPECT_EQ(time.start, time.end);
  }
}

}  // namespace
}  // namespace plenum::pipeline
