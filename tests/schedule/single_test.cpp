#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/schedule/core/action_text.h"

#include "tests/schedule/pipeline_figures.h"

namespace plenum::schedule {
namespace {

TEST(Single, AccumulatesOneMicroBatchAfterAnother) {
  const Schedule schedule = generate("single", {.num_micro_batches = 2, .stage_layers = {12}});
  const StageLayers layers(schedule.problem);
  std::string text;
  for (const Action& action : schedule.ranks.front().lane(Lane::Compute).actions()) {
    text += action_text(action, layers) + " ";
  }
  EXPECT_EQ(text, "F0.0 B0.0 F0.1 B0.1 NS0 U0 ");
  EXPECT_EQ(peak_activations(schedule), std::vector<std::size_t>({12}));
}

TEST(Single, HasNoBubble) {
  const GeneratorOptions options{.num_micro_batches = 5, .stage_layers = {12}};
  EXPECT_DOUBLE_EQ(simulate(generate("single", options), UnitCosts()).utilization, 1);
}

TEST(Single, RefusesASecondRank) {
  EXPECT_THROW(generate("single", {.depth = 2, .stage_layers = {1}}), base::UserError);
  EXPECT_THROW(generate("single", {.num_replicas = 2, .stage_layers = {1}}), base::UserError);
}

}  // namespace
}  // namespace plenum::schedule
