#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/schedule/core/action_text.h"

#include "tests/schedule/pipeline_figures.h"
#include "tests/support/expect_user_error.h"

namespace plenum::schedule {
namespace {

std::string lane_text(const Schedule& schedule, std::size_t rank, Lane lane) {
  const StageLayers layers(schedule.problem);
  std::string text;
  for (const Action& action : schedule.ranks[rank].lane(lane).actions()) {
    text += (text.empty() ? "" : " ") + action_text(action, layers);
  }
  return text;
}

/// A layer's reduction takes as long as its backward.
class ReductionCosts final : public CostModel {
 public:
  double seconds(Rank rank, const Action& action) const override {
    if (action.type != ActionType::ReduceGradient) return compute_.seconds(rank, action);
    return 2.0 * (action.end_layer.value - action.first_layer.value);
  }
  double latency_seconds(Rank, Rank) const override { return 0; }

 private:
  UnitCosts compute_;
};

TEST(DataParallel, CutsTheLastBackwardAtTheBordersOfBuckets) {
  const Schedule schedule = generate(
      "data-parallel", {.num_micro_batches = 2, .num_replicas = 3, .stage_layers = {5}, .num_buckets = 2});
  EXPECT_EQ(lane_text(schedule, 1, Lane::Compute), "F0.2 B0.2 F0.3 B0.3[2:5] B0.3[0:2] NS0 U0");
  EXPECT_EQ(lane_text(schedule, 1, Lane::DataParallel), "AR0[2:5] AR0[0:2] N");
}

TEST(DataParallel, ReducesShardsAndGathersWhatWasUpdated) {
  const Schedule schedule = generate("data-parallel", {.num_micro_batches = 1,
                                                       .num_replicas = 2,
                                                       .stage_layers = {4},
                                                       .num_buckets = 2,
                                                       .sharding = Sharding::Optimizer,
                                                       .has_tied_parameters = true});
  EXPECT_EQ(lane_text(schedule, 0, Lane::DataParallel), "RS0[2:4] RS0[0:2] TR N AG0[2:4] AG0[0:2]");
}

TEST(DataParallel, ReducesTheLastLayersHalfOfATiedParameterRightBehindTheLastLayer) {
  const Schedule schedule = generate("data-parallel", {.num_micro_batches = 2,
                                                       .num_replicas = 2,
                                                       .stage_layers = {4},
                                                       .num_buckets = 2,
                                                       .has_tied_parameters = true,
                                                       .has_tied_halves = true});
  EXPECT_EQ(lane_text(schedule, 1, Lane::Compute), "F0.2 B0.2 F0.3 B0.3[3] B0.3[2] B0.3[0:2] NS0 U0");
  EXPECT_EQ(lane_text(schedule, 1, Lane::DataParallel), "TW TO AR0[2:4] AR0[0:2] TR N");
}

TEST(DataParallel, ReducesAndGathersShardsOfATiedParameterByThemselves) {
  const Schedule schedule = generate("data-parallel", {.num_replicas = 2,
                                                       .stage_layers = {4},
                                                       .num_buckets = 2,
                                                       .sharding = Sharding::Optimizer,
                                                       .has_tied_parameters = true,
                                                       .has_tied_halves = true,
                                                       .has_tensor_norms = true});
  EXPECT_EQ(lane_text(schedule, 1, Lane::DataParallel),
            "TW TS RS0[2:4] RS0[0:2] TR N TN0 AG0[2:4] AG0[0:2] TG");
}

/// All of a tied parameter's reduction takes as long as the backward of eight layers, that of the rows that
/// are read as long as that of one.
class TiedCosts final : public CostModel {
 public:
  double seconds(Rank rank, const Action& action) const override {
    if (action.type == ActionType::ReduceTiedOutput) return 16;
    if (action.type == ActionType::ReduceTied) return has_halves_ ? 2 : 16;
    return compute_.seconds(rank, action);
  }
  double latency_seconds(Rank, Rank) const override { return 0; }
  explicit TiedCosts(bool has_halves) : has_halves_(has_halves) {}

 private:
  UnitCosts compute_;
  bool has_halves_;
};

TEST(DataParallel, HidesTheLastLayersHalfOfATiedParameterBehindTheOtherLayers) {
  GeneratorOptions options{
      .num_micro_batches = 2, .num_replicas = 4, .stage_layers = {12}, .has_tied_parameters = true};
  EXPECT_DOUBLE_EQ(simulate(generate("data-parallel", options), TiedCosts(false)).step_seconds, 72 + 16);
  options.has_tied_halves = true;
  EXPECT_DOUBLE_EQ(simulate(generate("data-parallel", options), TiedCosts(true)).step_seconds, 72 + 2);
}

TEST(DataParallel, ReducesHalvesOfATiedParameterOnlyWhereEveryRankHoldsTheWholeModel) {
  EXPECT_THROW(generate("data-parallel", {.num_replicas = 2, .stage_layers = {2}, .has_tied_halves = true}),
               base::UserError);
  EXPECT_THROW(
      generate("1f1b",
               {.depth = 2, .stage_layers = {2}, .has_tied_parameters = true, .has_tied_halves = true}),
      base::UserError);
  // A rank alone has nothing to reduce.
  const GeneratorOptions alone{.stage_layers = {2}, .has_tied_parameters = true, .has_tied_halves = true};
  EXPECT_EQ(lane_text(generate("single", alone), 0, Lane::DataParallel), "N");
}

TEST(DataParallel, ReducesShardsOfGradientsAfterEveryMicroBatch) {
  const Schedule schedule = generate("data-parallel", {.num_micro_batches = 2,
                                                       .num_replicas = 2,
                                                       .stage_layers = {4},
                                                       .num_buckets = 2,
                                                       .sharding = Sharding::Gradients});
  // Rounds count each rank's own micro-batches.
  EXPECT_EQ(lane_text(schedule, 1, Lane::Compute),
            "F0.2 B0.2[2:4] B0.2[0:2] F0.3 B0.3[2:4] B0.3[0:2] NS0 U0");
  EXPECT_EQ(lane_text(schedule, 1, Lane::DataParallel),
            "RR0.0[2:4] RR0.0[0:2] RR0.1[2:4] RR0.1[0:2] N AG0[2:4] AG0[0:2]");
}

TEST(DataParallel, GathersParametersForEveryPassWhereTheirPlaceHasOthers) {
  GeneratorOptions options{.num_micro_batches = 2,
                           .num_replicas = 2,
                           .stage_layers = {5},
                           .num_buckets = 5,
                           .sharding = Sharding::Parameters};
  const Schedule schedule = generate("data-parallel", options);
  EXPECT_EQ(lane_text(schedule, 1, Lane::Compute),
            "F0.2[0] F0.2[1] F0.2[2] F0.2[3] F0.2[4] B0.2[4] B0.2[3] B0.2[2] B0.2[1] B0.2[0] "
            "F0.3[0] F0.3[1] F0.3[2] F0.3[3] F0.3[4] B0.3[4] B0.3[3] B0.3[2] B0.3[1] B0.3[0] NS0 U0");
  // The first layers stay. Backward finds the last two in their places, the next forward the two behind the
  // first.
  EXPECT_EQ(lane_text(schedule, 1, Lane::DataParallel),
            "AG0[0] GF0.0[1] GF0.0[2] GF0.0[3] GF0.0[4] "
            "GB0.0[2] RR0.0[4] GB0.0[1] RR0.0[3] RR0.0[2] RR0.0[1] RR0.0[0] "
            "GF0.1[3] GF0.1[4] "
            "GB0.1[2] RR0.1[4] GB0.1[1] RR0.1[3] RR0.1[2] RR0.1[1] RR0.1[0] N");
  // Three buckets have a place each, and are gathered once.
  options.num_buckets = 3;
  EXPECT_EQ(lane_text(generate("data-parallel", options), 0, Lane::DataParallel),
            "AG0[0] GF0.0[1:3] GF0.0[3:5] RR0.0[3:5] RR0.0[1:3] RR0.0[0] RR0.1[3:5] RR0.1[1:3] RR0.1[0] N");
  options.num_buckets = 1;
  EXPECT_EQ(lane_text(generate("data-parallel", options), 0, Lane::DataParallel), "AG0 RR0.0 RR0.1 N");
  options.num_replicas = 1;
  EXPECT_EQ(lane_text(generate("data-parallel", options), 0, Lane::DataParallel), "N");
}

TEST(DataParallel, GathersABucketWhileTheOneBeforeItIsComputed) {
  // A layer is gathered in the time of its forward, and its gradient reduced in no time.
  class GatherCosts final : public CostModel {
   public:
    double seconds(Rank rank, const Action& action) const override {
      const double num_layers = action.end_layer.value - action.first_layer.value;
      return is_gather(action.type) ? num_layers : compute_.seconds(rank, action);
    }
    double latency_seconds(Rank, Rank) const override { return 0; }

   private:
    UnitCosts compute_;
  };
  for (const std::uint32_t num_micro_batches : {1, 3}) {
    const GeneratorOptions options{.num_micro_batches = num_micro_batches,
                                   .num_replicas = 2,
                                   .stage_layers = {12},
                                   .num_buckets = 12,
                                   .sharding = Sharding::Parameters};
    // 12 layers forward and back, and the first, for which everything waits.
    EXPECT_DOUBLE_EQ(simulate(generate("data-parallel", options), GatherCosts()).step_seconds,
                     36.0 * num_micro_batches + 1);
  }
}

TEST(DataParallel, RefusesToShardParametersWhereForwardsRunAhead) {
  for (const char* name : {"gpipe", "zb-h1"}) {
    test::expect_user_error(
        [&] {
          generate(name, {.num_micro_batches = 2,
                          .num_replicas = 2,
                          .stage_layers = {2},
                          .sharding = Sharding::Parameters});
        },
        "right behind its forward");
  }
}

TEST(DataParallel, SumsTheNormsOfTensorsThatShardsCut) {
  GeneratorOptions options{
      .num_replicas = 2, .stage_layers = {4}, .sharding = Sharding::Optimizer, .has_tensor_norms = true};
  EXPECT_EQ(lane_text(generate("data-parallel", options), 0, Lane::Compute), "F0.0 B0.0 NS0 UM0 U0");
  EXPECT_EQ(lane_text(generate("data-parallel", options), 0, Lane::DataParallel), "RS0 N TN0 AG0");
  // Whoever has whole tensors needs nobody for their norms.
  options.sharding = Sharding::None;
  EXPECT_EQ(lane_text(generate("data-parallel", options), 0, Lane::DataParallel), "AR0 N");
  options.sharding = Sharding::Optimizer;
  options.num_replicas = 1;
  EXPECT_EQ(lane_text(generate("single", options), 0, Lane::DataParallel), "N");
}

TEST(DataParallel, ExposesOnlyTheLastBucket) {
  // Two micro-batches of 12 layers take 72; each reduction runs beside the next bucket's backward.
  for (const std::size_t num_buckets : {1, 2, 3, 4, 6, 12}) {
    const GeneratorOptions options{
        .num_micro_batches = 2, .num_replicas = 4, .stage_layers = {12}, .num_buckets = num_buckets};
    const double exposed = 24.0 / static_cast<double>(num_buckets);
    EXPECT_DOUBLE_EQ(simulate(generate("data-parallel", options), ReductionCosts()).step_seconds,
                     72 + exposed);
  }
}

TEST(DataParallel, RefusesStages) {
  EXPECT_THROW(generate("data-parallel", {.depth = 2, .stage_layers = {1}}), base::UserError);
}

}  // namespace
}  // namespace plenum::schedule
