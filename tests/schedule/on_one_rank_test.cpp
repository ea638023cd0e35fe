// That the one rank trains the same is a test of the engine: tests/pipeline/kfac_stages_test.cpp and
// soap_stages_test.cpp.

#include "plenum/schedule/fill/on_one_rank.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/schedule/generate/generator.h"

#include "tests/support/constant_costs.h"

namespace plenum::schedule {
namespace {

constexpr std::size_t kMaps = 2;

Schedule filled_pipeline(std::string_view name, std::size_t num_replicas, const Filler& filler,
                         FillMode mode) {
  using enum ActionType;
  const test::ConstantCosts costs({{Forward, 1.0},
                                   {Backward, 2.0},
                                   {InputGradient, 1.0},
                                   {WeightGradient, 1.0},
                                   {CurvatureA, 0.2},
                                   {CurvatureB, 0.2},
                                   {Invert, 0.6},
                                   {AccumulateFactor, 0.1},
                                   {InverseRoot, 0.6},
                                   {Precondition, 0.1}});
  const Schedule base = generator_named(name).generate(
      {.depth = 4, .num_micro_batches = 4, .num_replicas = num_replicas, .stage_layers = {2}});
  return fill(base, filler, costs, {.mode = mode, .margin = 0.1, .drains = true}).schedule;
}

/// What decides how a schedule trains, apart from which rank does it: by the step of the cycle, the layer and
/// map, the age.
struct Training {
  using Place = std::tuple<std::size_t, std::uint32_t, std::uint16_t, std::uint8_t>;
  std::set<Place> inversions;                                          ///< by the step in which they end
  std::map<std::pair<std::size_t, std::uint32_t>, std::uint8_t> uses;  ///< the oldest, by step and layer
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, bool>> statistics;
  std::set<std::pair<std::size_t, std::uint32_t>> accumulated;  ///< by step and layer

  explicit Training(const Schedule& schedule) {
    for (const RankProgram& rank : schedule.ranks) {
      const LaneProgram& compute = rank.lane(Lane::Compute);
      for (std::size_t step = 0; step < compute.num_steps(); ++step) {
        for (const Action& action : compute.step(step)) {
          const std::uint32_t layer = action.first_layer.value;
          const bool is_inversion =
              action.type == ActionType::Invert || action.type == ActionType::InverseRoot;
          if (is_inversion && action.piece + 1 == action.num_pieces)
            inversions.emplace(step, layer, action.factor, action.age);
          if (action.type == ActionType::Precondition) {
            std::uint8_t& age = uses[{step, layer}];
            age = std::max(age, action.age);
          }
          if (action.type == ActionType::AccumulateFactor) {
            for (LayerId one = action.first_layer; one < action.end_layer; ++one.value)
              accumulated.emplace(step, one.value);
          }
          const bool is_a = action.type == ActionType::CurvatureA;
          if (is_a || action.type == ActionType::CurvatureB)
            statistics.emplace(action.micro_batch.value, layer, action.factor, is_a);
        }
      }
    }
  }
  friend bool operator==(const Training&, const Training&) = default;
};

TEST(OnOneRank, TakesTheSameStatisticsAndMakesAndUsesInversesInTheSameSteps) {
  for (const std::string_view name : {"gpipe", "1f1b", "interleaved", "chimera", "zb-h1"}) {
    for (const std::size_t num_replicas : {1, 2}) {
      const KfacFiller kfac(kMaps);
      const ShampooFiller shampoo(kMaps);
      const std::pair<const Filler&, FillMode> fillings[] = {
          {kfac, FillMode::Deferred}, {kfac, FillMode::Fresh}, {shampoo, FillMode::Deferred}};
      for (const auto& [filler, mode] : fillings) {
        SCOPED_TRACE(testing::Message() << name << ", replicas " << num_replicas << ", " << filler.name());
        const Schedule filled = filled_pipeline(name, num_replicas, filler, mode);
        EXPECT_EQ(filled.problem.has_partial_curvature, mode == FillMode::Fresh);
        const Schedule serial = on_one_rank(filled);
        EXPECT_TRUE(check(serial).violations.empty());
        EXPECT_EQ(serial.ranks.size(), 1U);
        EXPECT_EQ(serial.num_steps(), filled.num_steps());
        EXPECT_EQ(Training(serial), Training(filled));
      }
    }
  }
}

TEST(OnOneRank, RefusesAScheduleWithoutSecondOrderWork) {
  const Schedule base =
      generator_named("1f1b").generate({.depth = 2, .num_micro_batches = 2, .stage_layers = {1}});
  EXPECT_THROW(on_one_rank(base), base::UserError);
}

}  // namespace
}  // namespace plenum::schedule
