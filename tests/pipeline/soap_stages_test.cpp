// SOAP whose bases are refreshed by actions: at once the bytes of the whole update, in bubbles the losses of
// one rank with bases of the same age.

#include <algorithm>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/on_one_rank.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/schedule/generate/generator.h"

#include "tests/pipeline/staged_run.h"
#include "tests/support/constant_costs.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/test_sequences.h"

namespace plenum::pipeline {
namespace {

using schedule::ActionType;
using schedule::Schedule;

constexpr std::size_t kSoapMaps = 6;
constexpr std::uint64_t kSoapSteps = 8;
constexpr std::size_t kSoapMicroBatches = 4;  ///< over all replicas
constexpr std::int64_t kEvery = 3;

batch::StepBatch soap_batch(std::uint64_t step) {
  const std::vector<test::TestSequence> sequences = test::random_sequences(13, 16, 61, 40 + step);
  std::vector<std::vector<test::TestSequence>> parts(kSoapMicroBatches);
  for (std::size_t i = 0; i < sequences.size(); ++i) parts[i % kSoapMicroBatches].push_back(sequences[i]);
  batch::StepBatch batch{.step = step, .epoch = 1, .global = {}, .global_rows = {}, .micro_batches = {}};
  for (const auto& part : parts) batch.global += batch.micro_batches.emplace_back(test::lay_out(part)).work();
  return batch;
}

/// The wide side of the MLP is not rotated.
BertProgramOptions soap_options(const Schedule& schedule) {
  std::vector<batch::MicroBatch> all;
  for (std::uint64_t step = 0; step < kSoapSteps; ++step) {
    for (batch::MicroBatch& micro_batch : soap_batch(step).micro_batches)
      all.push_back(std::move(micro_batch));
  }
  return {.model = {.vocabulary = 61,
                    .width = 16,
                    .num_layers = static_cast<std::int64_t>(schedule::StageLayers(schedule.problem).total()),
                    .num_heads = 2,
                    .mlp_width = 24,
                    .max_positions = 16,
                    .hidden_dropout = 0.1,
                    .attention_dropout = 0.1,
                    .has_next_sentence = true},
          .capacity = test::capacity_of(all),
          .optimizer = {.kind = optim::OptimizerKind::Soap, .soap = {.every = kEvery, .limit = 16}},
          .seed = 17};
}

struct SoapResult {
  std::vector<double> losses;
  NamedValues weights;
};

SoapResult train_soap(const Schedule& schedule) {
  schedule::require_checked(schedule);
  StagedRun run(schedule, soap_options(schedule));
  SoapResult result;
  for (std::uint64_t step = 0; step < kSoapSteps; ++step)
    result.losses.push_back(run.step(soap_batch(step), 1e-2).loss());
  result.weights = run.weights();
  return result;
}

Schedule pipeline_for_soap(const schedule::Generator& generator, std::size_t num_replicas) {
  schedule::GeneratorOptions options{.depth = generator.is_pipeline() ? 2U : 1U,
                                     .num_micro_batches = kSoapMicroBatches / num_replicas,
                                     .num_replicas = num_replicas,
                                     .stage_layers = {},
                                     .has_tied_parameters = generator.is_pipeline()};
  options.stage_layers.assign(generator.num_stages(options), 1);
  return generator.generate(options);
}

class SoapSchedules : public testing::TestWithParam<std::pair<std::string, std::size_t>> {
 protected:
  Schedule plain() const {
    return pipeline_for_soap(schedule::generator_named(GetParam().first), GetParam().second);
  }
};

INSTANTIATE_TEST_SUITE_P(
    All, SoapSchedules, testing::ValuesIn([] {
      std::vector<std::pair<std::string, std::size_t>> all = {{"single", 1}, {"data-parallel", 2}};
      for (const schedule::Generator& generator : schedule::all_generators()) {
        for (const std::size_t num_replicas : {1, 2})
          if (generator.is_pipeline()) all.emplace_back(generator.name, num_replicas);
      }
      return all;
    }()),
    [](const auto& info) {
      std::string name = info.param.first + std::to_string(info.param.second);
      std::erase(name, '-');
      return name;
    });

TEST_P(SoapSchedules, ThatRefreshAtOnceHaveTheBytesOfTheWholeUpdate) {
  const SoapResult expected = train_soap(plain());
  const SoapResult actual =
      train_soap(with_periodic_refresh(plain(), schedule::ShampooFiller(kSoapMaps, 1), kEvery));
  EXPECT_EQ(actual.losses, expected.losses);
  EXPECT_EQ(actual.weights, expected.weights);
  EXPECT_LT(actual.losses.back(), actual.losses.front());
}

TEST(SoapStages, HaveTheBytesOfTheWholeUpdateThroughASkippedRefresh) {
  const Schedule plain = pipeline_for_soap(schedule::generator_named("data-parallel"), 2);
  const Schedule divided = with_periodic_refresh(plain, schedule::ShampooFiller(kSoapMaps, 1), kEvery);
  StagedRun expected(plain, soap_options(plain));
  StagedRun actual(divided, soap_options(divided));
  for (std::uint64_t step = 0; step < kSoapSteps; ++step) {
    const bool is_broken = step == kEvery;
    for (StagedRun* const run : {&expected, &actual}) {
      float& weight = run->program(1).buffers().weights_N.span<float>()[5];
      const float whole = weight;
      if (is_broken) weight = std::numeric_limits<float>::quiet_NaN();
      EXPECT_EQ(run->step(soap_batch(step), 1e-2).is_skipped, is_broken) << "step " << step;
      if (is_broken) weight = whole;
    }
  }
  EXPECT_EQ(actual.weights(), expected.weights());
}

/// Such that a refresh takes the bubbles of several steps.
test::ConstantCosts costs_of_refreshes() {
  using enum ActionType;
  return test::ConstantCosts({{Forward, 1.0},
                              {Backward, 2.0},
                              {InputGradient, 1.0},
                              {WeightGradient, 1.0},
                              {AccumulateFactor, 0.2},
                              {InverseRoot, 0.8},
                              {Precondition, 0.2}});
}

TEST(SoapStages, InBubblesTrainAsOneRankWithBasesOfTheSameAge) {
  const test::ConstantCosts costs = costs_of_refreshes();
  for (const std::string_view name : {"gpipe", "1f1b"}) {
    for (const bool drains : {false, true}) {
      SCOPED_TRACE(std::string(name) + (drains ? ", drained" : ""));
      const Schedule filled = fill(pipeline_for_soap(schedule::generator_named(name), 1),
                                   schedule::ShampooFiller(kSoapMaps, 1), costs, {.drains = drains})
                                  .schedule;
      EXPECT_GT(filled.problem.staleness, 0);
      const SoapResult actual = train_soap(filled);
      const SoapResult expected = train_soap(schedule::on_one_rank(filled));
      for (std::size_t step = 0; step < kSoapSteps; ++step)
        EXPECT_NEAR(actual.losses[step], expected.losses[step], 1e-4 * expected.losses[step]) << step;
      const Schedule at_once = with_periodic_refresh(pipeline_for_soap(schedule::generator_named(name), 1),
                                                     schedule::ShampooFiller(kSoapMaps, 1), 1);
      EXPECT_NE(actual.losses, train_soap(at_once).losses);
    }
  }
}

TEST(SoapStages, InBubblesOfReplicasGiveTheSameBytesTwice) {
  const Schedule filled = fill(pipeline_for_soap(schedule::generator_named("1f1b"), 2),
                               schedule::ShampooFiller(kSoapMaps, 1), costs_of_refreshes())
                              .schedule;
  EXPECT_GT(filled.problem.staleness, 0);
  const SoapResult once = train_soap(filled);
  const SoapResult twice = train_soap(filled);
  EXPECT_EQ(once.losses, twice.losses);
  EXPECT_EQ(once.weights, twice.weights);
  EXPECT_LT(once.losses.back(), once.losses.front());
}

TEST(SoapStages, KeepFactorsOnlyOfMatricesThatTheRankOwns) {
  const Schedule plain = pipeline_for_soap(schedule::generator_named("data-parallel"), 2);
  const Schedule divided = with_periodic_refresh(plain, schedule::ShampooFiller(kSoapMaps, 1), kEvery);
  StagedRun whole(plain, soap_options(plain));
  StagedRun parts(divided, soap_options(divided));
  const auto elements = [](StagedRun& run, std::size_t rank) {
    return run.program(rank).buffers().soap.state.num_elements();
  };
  EXPECT_EQ(elements(parts, 0) + elements(parts, 1), elements(whole, 0));
  EXPECT_GT(elements(parts, 0), 0);
  EXPECT_GT(elements(parts, 1), 0);
}

/// Every refresh cut into so many pieces, one behind the other.
Schedule in_pieces(Schedule schedule, std::uint16_t num_pieces) {
  for (schedule::RankProgram& rank : schedule.ranks) {
    schedule::LaneProgram& lane = rank.lane(schedule::Lane::Compute);
    schedule::LaneProgram cut;
    for (std::size_t step = 0; step < lane.num_steps(); ++step) {
      for (schedule::Action action : lane.step(step)) {
        const bool is_cut = action.type == ActionType::InverseRoot;
        action.num_pieces = is_cut ? num_pieces : std::uint16_t{1};
        for (action.piece = 0; action.piece < action.num_pieces; ++action.piece) cut.append(action);
      }
      cut.end_step();
    }
    lane = cut;
  }
  return schedule;
}

TEST(SoapStages, InPiecesAtOnceHaveTheBytesOfTheWholeUpdateThroughASkippedRefresh) {
  const Schedule plain = pipeline_for_soap(schedule::generator_named("data-parallel"), 2);
  const Schedule divided = with_periodic_refresh(plain, schedule::ShampooFiller(kSoapMaps, 1), kEvery);
  for (const std::uint16_t num_pieces : {2, 3, 7}) {
    SCOPED_TRACE(num_pieces);
    const Schedule cut = in_pieces(divided, num_pieces);
    schedule::require_checked(cut);
    StagedRun expected(plain, soap_options(plain));
    StagedRun actual(cut, soap_options(cut));
    for (std::uint64_t step = 0; step < kSoapSteps; ++step) {
      const bool is_broken = step == kEvery;
      for (StagedRun* const run : {&expected, &actual}) {
        float& weight = run->program(1).buffers().weights_N.span<float>()[5];
        const float whole = weight;
        if (is_broken) weight = std::numeric_limits<float>::quiet_NaN();
        EXPECT_EQ(run->step(soap_batch(step), 1e-2).is_skipped, is_broken) << "step " << step;
        if (is_broken) weight = whole;
      }
    }
    EXPECT_EQ(actual.weights(), expected.weights());
  }
}

TEST(SoapStages, InPiecesOverSeveralStepsTrainAsOneRankWithBasesOfTheSameAge) {
  for (const std::size_t num_replicas : {1, 2}) {
    SCOPED_TRACE(num_replicas);
    using enum ActionType;
    const test::ConstantCosts costs(
        {{Forward, 1.0}, {Backward, 2.0}, {AccumulateFactor, 0.2}, {InverseRoot, 4.0}, {Precondition, 0.2}});
    const Schedule filled = fill(pipeline_for_soap(schedule::generator_named("1f1b"), num_replicas),
                                 schedule::ShampooFiller(kSoapMaps, 4), costs, {.drains = true})
                                .schedule;
    const auto actions = filled.ranks.front().lane(schedule::Lane::Compute).actions();
    EXPECT_TRUE(std::ranges::any_of(actions, [](const auto& action) { return action.num_pieces > 1; }));
    const SoapResult actual = train_soap(filled);
    const SoapResult expected = train_soap(schedule::on_one_rank(filled));
    for (std::size_t step = 0; step < kSoapSteps; ++step)
      EXPECT_NEAR(actual.losses[step], expected.losses[step], 1e-4 * expected.losses[step]) << step;
  }
}

TEST(SoapStages, RefuseBasesInPiecesWhereRefreshesOverlap) {
  const Schedule filled =
      fill(pipeline_for_soap(schedule::generator_named("1f1b"), 1), schedule::ShampooFiller(kSoapMaps, 4),
           test::ConstantCosts(
               {{ActionType::Forward, 1.0}, {ActionType::Backward, 2.0}, {ActionType::InverseRoot, 4.0}}))
          .schedule;
  test::expect_user_error([&] { StagedRun(filled, soap_options(filled)); }, "has several under way");
}

}  // namespace
}  // namespace plenum::pipeline
