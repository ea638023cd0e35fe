#include "plenum/schedule/generate/generator.h"

#include <fstream>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/schedule/core/action_text.h"

#include "tests/schedule/pipeline_figures.h"
#include "tests/support/fitted_options.h"

namespace plenum::schedule {
namespace {

/// How often each layer of each micro-batch is passed by actions of a type.
std::vector<int> num_passes(const Schedule& schedule, ActionType type) {
  const std::size_t num_layers = StageLayers(schedule.problem).total();
  std::vector<int> counts(num_layers * schedule.problem.num_micro_batches, 0);
  for (const RankProgram& rank : schedule.ranks) {
    for (const Action& action : rank.lane(Lane::Compute).actions()) {
      if (action.type != type) continue;
      for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
        ++counts[action.micro_batch.index() * num_layers + layer];
      }
    }
  }
  return counts;
}

/// Says what is wrong with the schedule as far as counting and running can tell.
void expect_sound(const Schedule& schedule) {
  require_well_formed(schedule);
  const std::vector<int> forwards = num_passes(schedule, ActionType::Forward);
  const std::vector<int> ones(forwards.size(), 1);
  EXPECT_EQ(forwards, ones);
  const bool is_split = generator_named(schedule.name).splits_backward;
  EXPECT_EQ(num_passes(schedule, is_split ? ActionType::InputGradient : ActionType::Backward), ones);
  EXPECT_EQ(num_passes(schedule, ActionType::WeightGradient),
            is_split ? ones : std::vector<int>(ones.size(), 0));
  EXPECT_EQ(num_passes(schedule, ActionType::Recompute),
            schedule.problem.recomputation == Recomputation::Full ? ones : std::vector<int>(ones.size(), 0));
  const Dataflow dataflow(schedule);
  const ReplayResult result = replay(schedule, dataflow, UnitCosts(), 2);
  for (const BlockedAction& blocked : result.blocked) {
    const LaneProgram& lane = schedule.ranks[blocked.rank.index()].lane(blocked.lane);
    ADD_FAILURE() << "rank " << blocked.rank.value << " blocked at "
                  << action_text(lane.actions()[blocked.position], dataflow.layers());
  }
}

TEST(Generators, GiveSoundSchedulesAtOddSizes) {
  for (const Generator& generator : all_generators()) {
    for (const std::size_t depth : {1, 2, 3, 4, 5, 6}) {
      for (const std::size_t num_micro_batches : {1, 2, 3, 4, 5, 7, 11}) {
        for (const std::size_t num_replicas : {1, 3}) {
          const GeneratorOptions options{.depth = depth,
                                         .num_micro_batches = num_micro_batches,
                                         .num_replicas = num_replicas,
                                         .stage_layers = {2},
                                         .num_chunks = 3,
                                         .num_buckets = 2,
                                         .has_tied_parameters = true};
          if (!test::fits(generator, options)) continue;
          SCOPED_TRACE(fmt::format("{} {}x{}x{}", generator.name, depth, num_micro_batches, num_replicas));
          expect_sound(generator.generate(options));
        }
      }
    }
  }
}

TEST(Generators, GiveSoundSchedulesWithEveryOption) {
  for (const Generator& generator : all_generators()) {
    for (const std::size_t num_micro_batches : {1, 3, 6}) {
      GeneratorOptions options{.depth = 4,
                               .num_micro_batches = num_micro_batches,
                               .num_replicas = 2,
                               .num_chunks = 2,
                               .num_buckets = 3,
                               .recomputation = Recomputation::Full,
                               .sharding = Sharding::Optimizer,
                               .has_tied_parameters = true};
      options = test::fitted(generator, options);
      for (std::size_t stage = 0; stage < generator.num_stages(options); ++stage) {
        options.stage_layers.push_back(static_cast<std::uint16_t>(2 + stage * 3 % 4));
      }
      for (std::size_t i = 0; i < num_micro_batches * options.num_replicas; ++i) {
        options.micro_batch_sizes.push_back(static_cast<std::uint32_t>(100 + 7 * i));
      }
      SCOPED_TRACE(fmt::format("{} {}", generator.name, num_micro_batches));
      const Schedule schedule = generator.generate(options);
      EXPECT_EQ(schedule.name, generator.name);
      EXPECT_EQ(schedule.problem.micro_batch_sizes, options.micro_batch_sizes);
      expect_sound(schedule);
    }
  }
}

TEST(Generators, RecomputeALayerRightBeforeItsGradient) {
  for (const Generator& generator : all_generators()) {
    const Schedule schedule = generator.generate({.depth = generator.is_pipeline() ? 2u : 1u,
                                                  .num_micro_batches = 3,
                                                  .stage_layers = {3},
                                                  .recomputation = Recomputation::Full});
    for (const RankProgram& rank : schedule.ranks) {
      const std::span<const Action> actions = rank.lane(Lane::Compute).actions();
      for (std::size_t i = 0; i + 1 < actions.size(); ++i) {
        if (actions[i].type != ActionType::Recompute) continue;
        EXPECT_TRUE(actions[i + 1].type == ActionType::Backward ||
                    actions[i + 1].type == ActionType::InputGradient);
        EXPECT_EQ(actions[i + 1].micro_batch, actions[i].micro_batch);
        EXPECT_EQ(actions[i + 1].stage, actions[i].stage);
        EXPECT_EQ(actions[i].end_layer.index(), actions[i].first_layer.index() + 1);
        EXPECT_EQ(actions[i + 1].first_layer, actions[i].first_layer);
        EXPECT_EQ(actions[i + 1].end_layer, actions[i].end_layer);
      }
    }
  }
}

TEST(Generators, RefuseWhatCannotBeMet) {
  for (const Generator& generator : all_generators()) {
    const GeneratorOptions good{.depth = generator.is_pipeline() ? 2u : 1u, .stage_layers = {1}};
    EXPECT_NO_THROW(generator.generate(good));
    GeneratorOptions bad = good;
    bad.num_micro_batches = 0;
    EXPECT_THROW(generator.generate(bad), base::UserError) << generator.name;
    bad = good;
    bad.depth = 0;
    EXPECT_THROW(generator.generate(bad), base::UserError) << generator.name;
    bad = good;
    bad.num_replicas = 0;
    EXPECT_THROW(generator.generate(bad), base::UserError) << generator.name;
    bad = good;
    bad.stage_layers = {};
    EXPECT_THROW(generator.generate(bad), base::UserError) << generator.name;
    bad = good;
    bad.stage_layers = {1, 1, 1};
    EXPECT_THROW(generator.generate(bad), base::UserError) << generator.name;
    bad = good;
    bad.stage_layers = {0};
    EXPECT_THROW(generator.generate(bad), base::UserError) << generator.name;
    bad = good;
    bad.micro_batch_sizes = {1, 2};
    EXPECT_THROW(generator.generate(bad), base::UserError) << generator.name;
  }
}

TEST(Generators, AreFoundByNameAndSuggestTheNearest) {
  for (const Generator& generator : all_generators()) EXPECT_EQ(&generator_named(generator.name), &generator);
  try {
    generator_named("chimaera");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string_view(error.what()).find("chimera"), std::string_view::npos);
  }
}

TEST(Generators, AllStandInTheDocumentation) {
  std::ifstream file(PLENUM_SOURCE_DIR "/docs/schedules.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const Generator& generator : all_generators()) {
    EXPECT_NE(text.find(fmt::format("\n| `{}` |", generator.name)), std::string::npos) << generator.name;
  }
}

}  // namespace
}  // namespace plenum::schedule
