#include <cmath>
#include <string_view>

#include <gtest/gtest.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/profile_costs.h"

#include "tests/support/bert_layer_maps.h"

namespace plenum::schedule {
namespace {

/// One layer of BERT-Base on a P100, 32 sequences of 128 tokens.
constexpr LayerCosts kProfiledLayer = {.forward_seconds = 9.748e-3,
                                       .backward_seconds = 16.450e-3,
                                       .curvature_seconds = 25.547e-3,
                                       .inversion_seconds = 71.667e-3,
                                       .precondition_seconds = 6.805e-3};

/// Work of the filler that belongs to statistics of an earlier cycle, and all that there is.
struct FillerWork {
  std::size_t num_late = 0;
  double num_inversions = 0;

  explicit FillerWork(const Schedule& schedule) {
    for (const RankProgram& rank : schedule.ranks) {
      for (const LaneProgram& lane : rank.lanes) {
        for (std::size_t step = 0; step < lane.num_steps(); ++step) {
          for (const Action& action : lane.step(step)) {
            const bool is_use = action.type == ActionType::Precondition;
            num_late += !is_use && action.age > step ? 1 : 0;
            if (action.type == ActionType::Invert) num_inversions += 1.0 / action.num_pieces;
          }
        }
      }
    }
  }
};

TEST(DrainedFill, EndsAllWorkWithItsCycle) {
  constexpr std::size_t kMaps = 6;
  for (const std::string_view name : {"gpipe", "1f1b", "chimera", "zb-h1"}) {
    for (const std::size_t num_replicas : {1, 2}) {
      SCOPED_TRACE(testing::Message() << name << ", replicas " << num_replicas);
      const Schedule base = generator_named(name).generate(
          {.depth = 4, .num_micro_batches = 4, .num_replicas = num_replicas, .stage_layers = {3}});
      const ProfileCosts costs(base, kProfiledLayer, {.maps = test::bert_layer_maps()});
      const FillResult free = fill(base, KfacFiller(kMaps), costs);
      if (name == "1f1b") {
        EXPECT_GT(FillerWork(free.schedule).num_late, 0U) << "the others may happen to drain";
      }
      const FillResult drained = fill(base, KfacFiller(kMaps), costs, {.drains = true});
      const FillerWork work(drained.schedule);
      EXPECT_EQ(work.num_late, 0U);
      EXPECT_NEAR(work.num_inversions, 12 * kMaps, 1e-9) << "each map once";
      EXPECT_TRUE(check(drained.schedule).violations.empty());
      EXPECT_EQ(drained.refresh_steps, static_cast<double>(drained.schedule.num_steps()));
      // What waits for the last backward of the first step begins late, and a piece ends no gap exactly.
      EXPECT_LE(drained.refresh_steps, std::ceil(drained.refresh_bound) + 2);
    }
  }
}

}  // namespace
}  // namespace plenum::schedule
