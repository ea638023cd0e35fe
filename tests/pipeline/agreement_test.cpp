#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/describe/counted_elements.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/generate/generator.h"

#include "tests/pipeline/bert_run.h"
#include "tests/pipeline/toy_run.h"
#include "tests/support/function_costs.h"

namespace plenum::pipeline {
namespace {

using plenum::test::capacity_of;
using plenum::test::random_sequences;
using schedule::Rank;
using schedule::Schedule;
using schedule::Sharding;

constexpr std::uint64_t kSpoiledStep = 1;

/// A toy program whose part of the gradient is not finite in one step.
class SpoiledProgram final : public ToyProgram {
 public:
  using ToyProgram::ToyProgram;

  void square_gradient(const ActionRun& run) override {
    if (run.step == kSpoiledStep) spoil_gradients(run.action.stage);
    ToyProgram::square_gradient(run);
  }
};

/// The steps that each rank skips when one of them has a part that is not finite.
std::vector<std::vector<std::uint64_t>> skipped_steps(const Schedule& schedule, Rank spoiled) {
  ToyRun run(
      schedule, {},
      [&](const Schedule& of, const schedule::Dataflow& dataflow, Rank rank) -> std::unique_ptr<ToyProgram> {
        if (rank == spoiled) return std::make_unique<SpoiledProgram>(of, dataflow, rank);
        return make_toy_program(of, dataflow, rank);
      });
  run.executor().run(3);
  std::vector<std::vector<std::uint64_t>> skipped;
  for (const auto& program : run.programs()) skipped.push_back(program->skipped_steps());
  return skipped;
}

void expect_all_skip(const Schedule& schedule) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const std::vector<std::uint64_t>& skipped : skipped_steps(schedule, Rank::at(rank))) {
      EXPECT_EQ(skipped, std::vector<std::uint64_t>{kSpoiledStep}) << schedule.name << ", rank " << rank;
    }
  }
}

TEST(Agreement, SkipsAStepOnAllRanksWhereOnePartOfTheGradientIsNotFinite) {
  for (const schedule::Generator& generator : schedule::all_generators()) {
    for (const Sharding sharding : {Sharding::None, Sharding::Optimizer}) {
      expect_all_skip(generator.generate({.depth = generator.is_pipeline() ? 2u : 1u,
                                          .num_micro_batches = 2,
                                          .num_replicas = generator.mesh == schedule::Mesh::OneRank ? 1u : 2u,
                                          .stage_layers = {2},
                                          .sharding = sharding,
                                          .has_tied_parameters = true}));
    }
  }
}

TEST(Agreement, ReadsTheGradientThatTheUpdateUses) {
  const test::FunctionCosts costs(&toy_seconds);
  const Schedule filled =
      schedule::fill(schedule::generator_named("1f1b").generate(
                         {.depth = 2, .num_micro_batches = 4, .num_replicas = 2, .stage_layers = {2}}),
                     schedule::KfacFiller(1), costs)
          .schedule;
  expect_all_skip(filled);
}

/// BERT on one rank, with something done to its gradient before its squares are counted in one step.
class MeddledProgram final : public StageProgram {
 public:
  MeddledProgram(BertProgram& program, std::function<void(BertProgram&)> meddle)
      : program_(program), meddle_(std::move(meddle)) {}

  void forward(const ActionRun& run) override { program_.forward(run); }
  void backward(const ActionRun& run) override { program_.backward(run); }
  void square_gradient(const ActionRun& run) override {
    if (run.step == kSpoiledStep) meddle_(program_);
    program_.square_gradient(run);
  }
  void update(const ActionRun& run) override { program_.update(run); }
  comm::Elements to_reduce(const ActionRun& run) override { return program_.to_reduce(run); }
  PartitionedElements to_partition(const ActionRun& run) override { return program_.to_partition(run); }
  void communicated(const ActionRun& run) override { program_.communicated(run); }

 private:
  BertProgram& program_;
  std::function<void(BertProgram&)> meddle_;
};

/// What three steps give on each rank, when `meddle` is done to one of them before it counts.
std::vector<std::vector<StepOutcome>> outcomes_of(std::size_t num_ranks, std::size_t meddled_rank,
                                                  const std::function<void(BertProgram&)>& meddle) {
  const describe::ModelConfig model = small_model();
  const Schedule schedule = bert_schedule(model, num_ranks, 1);
  const std::vector<test::TestSequence> sequences = random_sequences(11, 24, 97, 5);
  const batch::StepBatch first = deal_out(0, sequences, num_ranks);
  std::vector<std::unique_ptr<BertProgram>> programs;
  std::vector<std::unique_ptr<MeddledProgram>> meddled;
  std::vector<StageProgram*> borrowed;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    programs.push_back(std::make_unique<BertProgram>(
        schedule, Rank::at(rank),
        BertProgramOptions{.model = model, .capacity = capacity_of(first.micro_batches), .seed = 17}));
    BertProgram& program = *programs.back();
    const std::vector<float> weights = test::random_weights(program.parameters(), model.width);
    std::copy(weights.begin(), weights.end(), program.buffers().weights_N.span<float>().begin());
    program.begin(0);
    meddled.push_back(std::make_unique<MeddledProgram>(
        program, rank == meddled_rank ? meddle : [](BertProgram&) {}));
    borrowed.push_back(meddled.back().get());
  }
  Executor executor(schedule, local_ranks(borrowed));
  std::vector<std::vector<StepOutcome>> outcomes(num_ranks);
  for (std::uint64_t step = 0; step < 3; ++step) {
    const batch::StepBatch batch = deal_out(step, sequences, num_ranks);
    for (const auto& program : programs) program->begin_step(batch, 1e-3);
    executor.run(1);
    for (std::size_t rank = 0; rank < num_ranks; ++rank)
      outcomes[rank].push_back(programs[rank]->outcome(step, batch.global));
  }
  return outcomes;
}

/// The elements that a rank counts of a replicated model.
describe::ParameterTable::ElementRange counted_by(const BertProgram& program, std::size_t rank,
                                                  std::size_t num_ranks) {
  return describe::counted_elements({0, program.parameters().num_elements()}, rank, num_ranks);
}

/// A gradient among them: what lies between tensors is none.
float& gradient_counted_by(BertProgram& program, std::size_t rank, std::size_t num_ranks) {
  const auto own = counted_by(program, rank, num_ranks);
  const std::vector<describe::Parameter>& all = program.parameters().parameters();
  const auto first = std::find_if(all.begin(), all.end(), [&](const describe::Parameter& parameter) {
    return parameter.begin >= own.begin;
  });
  base::check(first != all.end() && first->begin < own.end, "no tensor begins in the part of rank {}", rank);
  return program.buffers().gradients_N.span<float>()[static_cast<std::size_t>(first->begin)];
}

TEST(Agreement, OfBertSkipsAStepOnAllRanksWhereOnePartOfTheGradientIsNotFinite) {
  for (const std::size_t num_ranks : {2, 3, 4}) {
    for (std::size_t spoiled = 0; spoiled < num_ranks; ++spoiled) {
      const auto outcomes = outcomes_of(num_ranks, spoiled, [&](BertProgram& program) {
        gradient_counted_by(program, spoiled, num_ranks) = NAN;
      });
      for (const std::vector<StepOutcome>& of_rank : outcomes) {
        EXPECT_FALSE(of_rank[0].is_skipped);
        EXPECT_TRUE(of_rank[1].is_skipped) << num_ranks << " ranks, rank " << spoiled;
        EXPECT_EQ(of_rank[2].num_updates, 2U);
      }
    }
  }
}

TEST(Agreement, OfBertCountsEachElementOnOneRank) {
  constexpr std::size_t kNumRanks = 3;
  const auto norms = [](const std::function<void(BertProgram&)>& meddle) {
    std::vector<double> of_ranks;
    for (const std::vector<StepOutcome>& outcomes : outcomes_of(kNumRanks, 1, meddle)) {
      of_ranks.push_back(outcomes[kSpoiledStep].gradient_norm);
    }
    return of_ranks;
  };
  const std::vector<double> sound = norms([](BertProgram&) {});
  EXPECT_EQ(sound, std::vector<double>(kNumRanks, sound[0]));
  // What rank 1 has of the others' parts counts for nothing; its own counts on all.
  EXPECT_EQ(norms([](BertProgram& program) {
              const auto own = counted_by(program, 1, kNumRanks);
              const std::span<float> gradients = program.buffers().gradients_N.span<float>();
              std::fill(gradients.begin(), gradients.begin() + own.begin, 7.0F);
              std::fill(gradients.begin() + own.end, gradients.end(), 7.0F);
            }),
            sound);
  const std::vector<double> larger =
      norms([](BertProgram& program) { gradient_counted_by(program, 1, kNumRanks) = 1000; });
  EXPECT_EQ(larger, std::vector<double>(kNumRanks, larger[0]));
  EXPECT_NEAR(larger[0], 1000, 1);
}

TEST(Agreement, OfBertTellsAllRanksInTheSameStepThatAnyOfThemAsksToStop) {
  const describe::ModelConfig model = small_model();
  const std::vector<test::TestSequence> sequences = random_sequences(11, 24, 97, 5);
  for (const std::size_t num_ranks : {1, 2, 4}) {
    for (std::size_t asking = 0; asking < num_ranks; ++asking) {
      BertRun run(bert_schedule(model, num_ranks, 1),
                  {.model = model, .capacity = capacity_of(deal_out(0, sequences, num_ranks).micro_batches)});
      for (std::uint64_t step = 0; step < 2; ++step) {
        if (step == 1) run.program(asking).ask_to_stop();
        run.step(deal_out(step, sequences, num_ranks));
        for (std::size_t rank = 0; rank < num_ranks; ++rank) {
          EXPECT_EQ(run.outcome(step, rank).is_stop_asked, step == 1)
              << "rank " << rank << " of " << num_ranks << ", asked by " << asking;
        }
      }
    }
  }
}

TEST(Agreement, OfBertTellsAllRanksInTheStepUnderWayThatOneIsAskedToStop) {
  constexpr std::size_t kNumRanks = 3;
  for (std::size_t asked = 0; asked < kNumRanks; ++asked) {
    const auto outcomes = outcomes_of(kNumRanks, asked, [](BertProgram& program) { program.ask_to_stop(); });
    for (const std::vector<StepOutcome>& of_rank : outcomes) {
      EXPECT_FALSE(of_rank[kSpoiledStep - 1].is_stop_asked);
      EXPECT_TRUE(of_rank[kSpoiledStep].is_stop_asked) << "rank " << asked << " was asked";
    }
  }
}

TEST(Agreement, OfBertTellsAllRanksWhatTheClockOfOneOfThemSays) {
  constexpr std::size_t kNumRanks = 3;
  const describe::ModelConfig model = small_model();
  const std::vector<test::TestSequence> sequences = random_sequences(11, 24, 97, 5);
  BertRun run(bert_schedule(model, kNumRanks, 1),
              {.model = model, .capacity = capacity_of(deal_out(0, sequences, kNumRanks).micro_batches)});
  std::uint64_t step = 0;
  for (const DueByClock& due : {DueByClock{.is_time_up = true}, DueByClock{.is_checkpoint_due = true},
                                DueByClock{.is_evaluation_due = true}, DueByClock{}}) {
    for (std::size_t ahead = 0; ahead < kNumRanks; ++ahead, ++step) {
      run.set_due_by_clock(ahead, due);
      run.step(deal_out(step, sequences, kNumRanks));
      run.set_due_by_clock(ahead, {});
      for (std::size_t rank = 0; rank < kNumRanks; ++rank) {
        EXPECT_EQ(run.outcome(step, rank).due, due) << "rank " << rank << ", said by " << ahead;
        EXPECT_FALSE(run.outcome(step, rank).is_stop_asked);
      }
    }
  }
}

}  // namespace
}  // namespace plenum::pipeline
