#include "plenum/train/agreement.h"

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "plenum/comm/local/local_world.h"
#include "plenum/train/evaluation.h"
#include "plenum/train/run.h"
#include "plenum/train/run_policy.h"

#include "tests/pipeline/bert_run.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using comm::local::LocalWorld;
using pipeline::BertProgram;
using schedule::Rank;
using testing::Each;
using testing::ElementsAre;
using testing::Optional;
using testing::Pair;

constexpr std::size_t kNumProcesses = 3;

/// Runs something once for each process, all at the same time, and gives what each gave.
template <typename Result>
std::vector<Result> in_all_processes(const std::function<Result(std::size_t)>& work) {
  std::vector<std::optional<Result>> results(kNumProcesses);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kNumProcesses; ++i) threads.emplace_back([&, i] { results[i] = work(i); });
  }
  std::vector<Result> given;
  for (std::optional<Result>& result : results) given.push_back(std::move(*result));
  return given;
}

using Pauses = std::vector<std::pair<std::uint64_t, Pause>>;

/// A process that trains one rank of a run. Its world is all it shares with the others.
class Process {
 public:
  Process(LocalWorld& world, std::size_t index)
      : schedule_(pipeline::bert_schedule(model_, kNumProcesses, 1)),
        program_(schedule_, Rank::at(index),
                 {.model = model_, .capacity = test::capacity_of(batch(0).micro_batches)}) {
    const std::vector<float> weights = test::random_weights(program_.parameters(), model_.width);
    std::copy(weights.begin(), weights.end(), program_.buffers().weights_N.span<float>().begin());
    program_.begin(0);
    std::vector<pipeline::LocalRank> own;
    own.push_back({Rank::at(index), &program_, world.communicator(Rank::at(index))});
    executor_.emplace(schedule_, std::move(own));
  }

  /// Trains to the end of the run; `before_step` gives what the process's clock says, and may ask it to stop.
  /// Gives the pauses with the number of the step before them.
  Pauses train(const RunCadence& cadence,
               const std::function<RunTimes(std::uint64_t, BertProgram&)>& before_step) {
    const RunPolicy policy(cadence);
    Pauses pauses;
    for (std::uint64_t step = 1; pauses.empty() || !pauses.back().second.is_end; ++step) {
      const batch::StepBatch batch = this->batch(step - 1);
      program_.begin_step(batch, 1e-3, policy.due_by_clock(step, before_step(step, program_)));
      executor_->run(1);
      Agreed agreed;
      agreed.add(program_.outcome(step - 1, batch.global));
      const Pause pause = policy.after(step, agreed);
      if (pause.is_needed()) pauses.emplace_back(step, pause);
    }
    return pauses;
  }

 private:
  static batch::StepBatch batch(std::uint64_t step) {
    return pipeline::deal_out(step, test::random_sequences(6, 24, 97, 5), kNumProcesses);
  }

  describe::ModelConfig model_ = pipeline::small_model();
  schedule::Schedule schedule_;
  BertProgram program_;
  std::optional<pipeline::Executor> executor_;
};

/// Clocks have their say after 10 s.
RunCadence cadence_of_steps(std::uint64_t num_steps) {
  RunCadence cadence;
  cadence.num_steps = num_steps;
  cadence.time_limit_seconds = cadence.checkpoint_seconds = cadence.evaluation_seconds = 10;
  return cadence;
}

/// What each process does between steps; `before_step` is told the number of the process first.
std::vector<Pauses> pauses_of(
    const RunCadence& cadence,
    const std::function<RunTimes(std::size_t, std::uint64_t, BertProgram&)>& before_step) {
  LocalWorld world(kNumProcesses);
  return in_all_processes<Pauses>([&](std::size_t index) {
    return Process(world, index).train(cadence, [&](std::uint64_t step, BertProgram& program) {
      return before_step(index, step, program);
    });
  });
}

TEST(ProcessesOfARun, EndAfterTheSameStepWhereOneIsAskedToStop) {
  const auto all =
      pauses_of(cadence_of_steps(8), [](std::size_t process, std::uint64_t step, BertProgram& own) {
        if (process == 1 && step == 3) own.ask_to_stop();
        return RunTimes{};
      });
  for (const Pauses& pauses : all) EXPECT_THAT(pauses, ElementsAre(Pair(3, Pause{.is_end = true})));
}

TEST(ProcessesOfARun, EndAfterTheSameStepWhereTheTimeOfOneIsUp) {
  const auto all = pauses_of(cadence_of_steps(8), [](std::size_t process, std::uint64_t step, BertProgram&) {
    return RunTimes{.elapsed_seconds = process == 2 && step == 4 ? 11.0 : 1.0};
  });
  for (const Pauses& pauses : all) EXPECT_THAT(pauses, ElementsAre(Pair(4, Pause{.is_end = true})));
}

TEST(ProcessesOfARun, SaveAndEvaluateAfterTheSameStepsWhereTheClockOfOneSaysSo) {
  const auto all = pauses_of(cadence_of_steps(5), [](std::size_t process, std::uint64_t step, BertProgram&) {
    return RunTimes{.since_checkpoint_seconds = process == 0 && step == 2 ? 11 : 1.0,
                    .since_evaluation_seconds = process == 2 && step == 3 ? 11 : 1.0};
  });
  for (const Pauses& pauses : all) {
    EXPECT_THAT(pauses, ElementsAre(Pair(2, Pause{.is_saved = true}), Pair(3, Pause{.is_evaluated = true}),
                                    Pair(5, Pause{.is_evaluated = true, .is_saved = true, .is_end = true})));
  }
}

using ProcessesOfAnEvaluation = TrainingTest;

TEST_F(ProcessesOfAnEvaluation, CutItShortBeforeTheSameBatchWhereOneIsAskedToStop) {
  std::vector<RunOptions> given;
  for (std::size_t i = 0; i < kNumProcesses; ++i) given.push_back(options("run" + std::to_string(i)));
  std::vector<train::Run> runs;
  for (const RunOptions& options : given)
    runs.push_back(open_run(options, open_training_data(options), observer_));
  const data::SequenceSource& held_out = *runs.front().data->held_out();
  const data::EvaluationBatches batches(held_out, {.micro_batch_tokens = 32});
  ASSERT_GT(batches.size(), 3U);

  // The number of the batch before which each process gave up; none if it evaluated all.
  const auto cut_by = [&](std::optional<std::size_t> asked) {
    LocalWorld world(kNumProcesses);
    return in_all_processes<std::optional<std::size_t>>([&](std::size_t index) {
      const auto processes = world.communicator(Rank::at(index));
      Agreement agreement(*processes);
      std::size_t num_batches = 0;
      const auto evaluation = evaluate(*runs[index].inference, batches, [&] {
        return !agreement.is_wished_by_any(++num_batches >= 3 && asked == index);
      });
      return evaluation ? std::nullopt : std::optional(num_batches);
    });
  };
  for (std::size_t asked = 0; asked < kNumProcesses; ++asked) EXPECT_THAT(cut_by(asked), Each(Optional(3)));
  for (const auto& cut : cut_by(std::nullopt)) EXPECT_FALSE(cut.has_value());
}

}  // namespace
}  // namespace plenum::train
