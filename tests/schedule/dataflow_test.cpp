#include "plenum/schedule/core/dataflow.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/schedule/core/action_text.h"
#include "plenum/schedule/simulate/factor_shares.h"
#include "plenum/schedule/text/parse_schedule.h"

#include "tests/schedule/pipeline_figures.h"
#include "tests/support/bert_layer_maps.h"
#include "tests/support/kfac_schedule.h"

namespace plenum::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// A schedule and its dataflow, asked in words.
class Asked {
 public:
  Asked(std::string_view name, const GeneratorOptions& options)
      : schedule_(generate(name, options)), dataflow_(schedule_) {}

  const Dataflow& dataflow() const { return dataflow_; }
  Action action(std::string_view word) const { return parse_action(word, dataflow_.layers()); }

  std::vector<std::string> inputs(std::uint32_t rank, std::string_view word) const {
    std::vector<ValueRef> values;
    dataflow_.inputs({rank}, action(word), values);
    return in_words({rank}, values);
  }
  std::vector<std::string> outputs(std::uint32_t rank, std::string_view word) const {
    std::vector<ValueRef> values;
    dataflow_.outputs({rank}, action(word), values);
    return in_words({rank}, values);
  }

 private:
  std::vector<std::string> in_words(Rank rank, const std::vector<ValueRef>& values) const {
    std::vector<std::string> words;
    for (const ValueRef& value : values) {
      EXPECT_LT(value.index, dataflow_.num_values(rank));
      words.push_back(dataflow_.describe(rank, value.index) +
                      (value.age > 0 ? ", " + std::to_string(value.age) + " step before" : ""));
    }
    return words;
  }

  Schedule schedule_;
  Dataflow dataflow_;
};

TEST(Dataflow, OfAPipelineGoesForwardAndBackThroughItsStages) {
  const Asked gpipe("gpipe", {.depth = 2, .num_micro_batches = 2, .stage_layers = {2}});
  EXPECT_THAT(gpipe.inputs(0, "F0.1"),
              ElementsAre("the update of layer 0, 1 step before", "the update of layer 1, 1 step before"));
  EXPECT_THAT(gpipe.outputs(0, "F0.1"), ElementsAre("the output of stage 0 from layer 0 for micro-batch 1",
                                                    "the saved activations of stage 0 from layer 0 for "
                                                    "micro-batch 1"));
  EXPECT_THAT(gpipe.inputs(0, "SF0.1"), ElementsAre("the output of stage 0 from layer 0 for micro-batch 1"));
  EXPECT_THAT(gpipe.outputs(0, "SF0.1"), ElementsAre("the sent activation of stage 0 for micro-batch 1"));
  EXPECT_THAT(gpipe.inputs(1, "RF1.1"), IsEmpty());
  EXPECT_THAT(gpipe.outputs(1, "RF1.1"), ElementsAre("the input of stage 1 for micro-batch 1"));
  EXPECT_THAT(gpipe.inputs(1, "F1.1"),
              ElementsAre("the input of stage 1 for micro-batch 1", "the update of layer 2, 1 step before",
                          "the update of layer 3, 1 step before"));
  EXPECT_THAT(gpipe.outputs(1, "F1.1"), ElementsAre("the output of stage 1 from layer 2 for micro-batch 1",
                                                    "the saved activations of stage 1 from layer 2 for "
                                                    "micro-batch 1",
                                                    "the output gradient of stage 1 for micro-batch 1"));
  EXPECT_THAT(gpipe.inputs(1, "B1.1"), ElementsAre("the output gradient of stage 1 for micro-batch 1",
                                                   "the saved activations of stage 1 from layer 2 for "
                                                   "micro-batch 1"));
  EXPECT_THAT(gpipe.outputs(1, "B1.1"),
              ElementsAre("the input gradient of stage 1 from layer 2 for micro-batch 1",
                          "the weight gradient of stage 1 from layer 2 for micro-batch 1"));
  EXPECT_THAT(gpipe.inputs(1, "SB1.1"),
              ElementsAre("the input gradient of stage 1 from layer 2 for micro-batch 1"));
  EXPECT_THAT(gpipe.outputs(0, "RB0.1"), ElementsAre("the output gradient of stage 0 for micro-batch 1"));
  EXPECT_THAT(gpipe.inputs(0, "NS0"),
              UnorderedElementsAre("the weight gradient of stage 0 from layer 0 for micro-batch 0",
                                   "the weight gradient of stage 0 from layer 0 for micro-batch 1"));
  EXPECT_THAT(gpipe.outputs(0, "NS0"), ElementsAre("the squares of the gradient of layer 0",
                                                   "the squares of the gradient of layer 1"));
  EXPECT_THAT(gpipe.inputs(0, "N"), ElementsAre("the squares of the gradient of layer 0",
                                                "the squares of the gradient of layer 1"));
  EXPECT_THAT(gpipe.inputs(0, "U0"),
              UnorderedElementsAre("the weight gradient of stage 0 from layer 0 for micro-batch 0",
                                   "the weight gradient of stage 0 from layer 0 for micro-batch 1",
                                   "the agreement of all ranks"));
  EXPECT_THAT(gpipe.outputs(0, "U0"), ElementsAre("the update of layer 0", "the update of layer 1"));
}

TEST(Dataflow, OfChimeraSumsEachStageOverBothDirections) {
  const Asked chimera("chimera", {.depth = 2, .num_micro_batches = 4, .stage_layers = {1}});
  const Dataflow& dataflow = chimera.dataflow();
  EXPECT_EQ(dataflow.peer(chimera.action("SF0.0")), Rank{1});
  EXPECT_EQ(dataflow.peer(chimera.action("SF0.3")), Rank{0});
  EXPECT_EQ(dataflow.peer(chimera.action("RB0.3")), Rank{0});
  EXPECT_TRUE(dataflow.peer(chimera.action("SF1.3")).is_none());
  EXPECT_TRUE(dataflow.peer(chimera.action("SB0.0")).is_none());
  EXPECT_THAT(dataflow.group(chimera.action("AR1")), ElementsAre(Rank{0}, Rank{1}));
  EXPECT_THAT(chimera.inputs(0, "AR1"),
              UnorderedElementsAre("the weight gradient of stage 1 from layer 1 for micro-batch 2",
                                   "the weight gradient of stage 1 from layer 1 for micro-batch 3"));
  EXPECT_THAT(chimera.inputs(1, "AR1"),
              UnorderedElementsAre("the weight gradient of stage 1 from layer 1 for micro-batch 0",
                                   "the weight gradient of stage 1 from layer 1 for micro-batch 1"));
  EXPECT_THAT(chimera.outputs(1, "AR1"), ElementsAre("the reduced gradient of layer 1"));
  EXPECT_THAT(chimera.inputs(1, "NS0"), ElementsAre("the reduced gradient of layer 0"));
  EXPECT_THAT(chimera.inputs(1, "NS1"), ElementsAre("the reduced gradient of layer 1"));
  EXPECT_THAT(chimera.inputs(1, "N"), UnorderedElementsAre("the squares of the gradient of layer 0",
                                                           "the squares of the gradient of layer 1"));
}

TEST(Dataflow, OfDataParallelismFollowsBuckets) {
  const Asked parallel("data-parallel", {.num_micro_batches = 2,
                                         .num_replicas = 2,
                                         .stage_layers = {4},
                                         .num_buckets = 2,
                                         .sharding = Sharding::Optimizer});
  EXPECT_EQ(parallel.dataflow().num_segments({}), 2u);
  EXPECT_THAT(parallel.inputs(1, "F0.3"), ElementsAre("the gathered parameters of layer 0, 1 step before",
                                                      "the gathered parameters of layer 1, 1 step before",
                                                      "the gathered parameters of layer 2, 1 step before",
                                                      "the gathered parameters of layer 3, 1 step before"));
  EXPECT_THAT(parallel.inputs(1, "B0.3[0:2]"),
              ElementsAre("the input gradient of stage 0 from layer 2 for micro-batch 3",
                          "the saved activations of stage 0 from layer 0 for micro-batch 3"));
  EXPECT_THAT(parallel.inputs(1, "RS0[2:4]"),
              UnorderedElementsAre("the weight gradient of stage 0 from layer 2 for micro-batch 2",
                                   "the weight gradient of stage 0 from layer 2 for micro-batch 3"));
  EXPECT_THAT(parallel.outputs(1, "RS0[2:4]"),
              ElementsAre("the reduced gradient of layer 2", "the reduced gradient of layer 3"));
  EXPECT_THAT(parallel.inputs(1, "AG0[0:2]"), ElementsAre("the update of layer 0", "the update of layer 1"));
}

TEST(Dataflow, OfGatheredParametersFollowsTheirPlaces) {
  const Asked sharded("data-parallel", {.num_micro_batches = 2,
                                        .num_replicas = 2,
                                        .stage_layers = {5},
                                        .num_buckets = 5,
                                        .sharding = Sharding::Parameters});
  EXPECT_THAT(sharded.inputs(1, "AG0[0]"), ElementsAre("the update of layer 0, 1 step before"));
  EXPECT_THAT(sharded.inputs(1, "F0.3[0]"), ElementsAre("the gathered parameters of layer 0"));
  EXPECT_THAT(sharded.inputs(1, "GF0.0[1]"), ElementsAre("the update of layer 1, 1 step before"));
  // Layers 1 and 3 share a place.
  EXPECT_THAT(sharded.inputs(1, "GF0.0[3]"),
              UnorderedElementsAre("the update of layer 3, 1 step before",
                                   "the output of stage 0 from layer 1 for micro-batch 2"));
  EXPECT_THAT(sharded.inputs(1, "GF0.1[3]"),
              UnorderedElementsAre("the update of layer 3, 1 step before",
                                   "the output of stage 0 from layer 1 for micro-batch 3",
                                   "the input gradient of stage 0 from layer 1 for micro-batch 2"));
  EXPECT_THAT(sharded.outputs(1, "GF0.1[3]"),
              ElementsAre("the parameters for the forward of stage 0 from layer 3 for micro-batch 3"));
  EXPECT_THAT(sharded.inputs(1, "GB0.1[1]"),
              UnorderedElementsAre("the update of layer 1, 1 step before",
                                   "the input gradient of stage 0 from layer 3 for micro-batch 3"));
  const auto reads = [&](const char* pass, const char* parameters) {
    EXPECT_THAT(sharded.inputs(1, pass), testing::Contains(parameters)) << pass;
  };
  reads("F0.3[3]", "the parameters for the forward of stage 0 from layer 3 for micro-batch 3");
  reads("B0.3[3]", "the parameters for the forward of stage 0 from layer 3 for micro-batch 3");
  reads("B0.2[1]", "the parameters for the backward of stage 0 from layer 1 for micro-batch 2");
  reads("F0.3[1]", "the parameters for the backward of stage 0 from layer 1 for micro-batch 2");
  reads("B0.3[0]", "the gathered parameters of layer 0");
}

TEST(Dataflow, HandsOnBetweenStagesOfOneRankWithoutAMessage) {
  const Asked interleaved("interleaved", {.num_micro_batches = 1, .stage_layers = {1}, .num_chunks = 2});
  EXPECT_THAT(interleaved.outputs(0, "F0.0"),
              ElementsAre("the output of stage 0 from layer 0 for micro-batch 0",
                          "the saved activations of stage 0 from layer 0 for micro-batch 0",
                          "the input of stage 1 for micro-batch 0"));
  EXPECT_THAT(interleaved.outputs(0, "B1.0"),
              ElementsAre("the input gradient of stage 1 from layer 1 for micro-batch 0",
                          "the weight gradient of stage 1 from layer 1 for micro-batch 0",
                          "the output gradient of stage 0 for micro-batch 0"));
}

TEST(Dataflow, SplitsABackwardAndRecomputesWhatItNeeds) {
  const Asked split(
      "zb-h1",
      {.depth = 1, .num_micro_batches = 1, .stage_layers = {1}, .recomputation = Recomputation::Full});
  EXPECT_THAT(split.outputs(0, "F0.0"), ElementsAre("the output of stage 0 from layer 0 for micro-batch 0",
                                                    "the output gradient of stage 0 for micro-batch 0"));
  EXPECT_THAT(split.inputs(0, "RC0.0"), ElementsAre("the output of stage 0 from layer 0 for micro-batch 0"));
  EXPECT_THAT(split.outputs(0, "RC0.0"),
              ElementsAre("the saved activations of stage 0 from layer 0 for micro-batch 0"));
  EXPECT_THAT(split.outputs(0, "I0.0"),
              ElementsAre("the input gradient of stage 0 from layer 0 for micro-batch 0"));
  EXPECT_THAT(split.inputs(0, "W0.0"),
              ElementsAre("the input gradient of stage 0 from layer 0 for micro-batch 0"));
  EXPECT_THAT(split.outputs(0, "W0.0"),
              ElementsAre("the weight gradient of stage 0 from layer 0 for micro-batch 0"));
}

TEST(Dataflow, OfPartialCurvatureWaitsForWhatTheScheduleCovers) {
  const auto waits = [](std::string_view text, std::uint32_t rank, std::string_view word) {
    const Schedule schedule = parse_schedule(text, "kfac");
    const Dataflow dataflow(schedule);
    std::vector<ValueRef> values;
    dataflow.inputs({rank}, parse_action(word, dataflow.layers()), values);
    std::vector<std::string> words;
    for (const ValueRef& value : values) words.push_back(dataflow.describe({rank}, value.index));
    return words;
  };
  EXPECT_THAT(waits(test::kPartialKfacSchedule, 0, "KR0[0]/0~1"),
              UnorderedElementsAre("curvature A of layer 0, factor 0, for micro-batch 0",
                                   "curvature B of layer 0, factor 0, for micro-batch 0"));
  EXPECT_THAT(waits(test::kPartialKfacSchedule, 0, "KR0[0]/1~1"),
              UnorderedElementsAre("curvature B of layer 0, factor 1, for micro-batch 0"));
  EXPECT_THAT(waits(test::kPartialKfacSchedule, 1, "KR0[0]/0~1"),
              UnorderedElementsAre("curvature A of layer 0, factor 0, for micro-batch 1"));
  // A holder that covers nothing waits for its backward.
  std::string text(test::kPartialKfacSchedule);
  text.erase(text.find("KA0.1[0]/0 "), 11);
  EXPECT_THAT(waits(text, 1, "KR0[0]/0~1"),
              UnorderedElementsAre("the input gradient of stage 0 from layer 0 for micro-batch 1"));
  EXPECT_EQ(waits(test::kKfacSchedule, 1, "KR0[0]/0~1").size(), 2U);
}

TEST(OwnerIndex, SharesTheInversionsOfAStageAlmostEvenly) {
  const FactorShares shares(test::bert_layer_maps());
  const double heaviest = shares.inversion(5);
  for (std::size_t num_holders = 2; num_holders <= 12; ++num_holders) {
    for (std::size_t num_layers = 3; num_layers <= 12; ++num_layers) {
      std::vector<double> work(num_holders, 0.0);
      for (std::size_t layer = 0; layer < num_layers; ++layer) {
        for (std::size_t map = 0; map < shares.num_maps(); ++map) {
          work[owner_index(layer, map, num_layers, num_holders)] += shares.inversion(map);
        }
      }
      const double mean = static_cast<double>(num_layers) / static_cast<double>(num_holders);
      // Two maps of a layer are heavy, and some holder has as many of them as the mean, rounded up.
      const auto most_heavy = static_cast<double>((2 * num_layers + num_holders - 1) / num_holders);
      EXPECT_LE(*std::max_element(work.begin(), work.end()), 1.07 * std::max(mean, most_heavy * heaviest))
          << num_holders << " holders, " << num_layers << " layers";
    }
  }
}

}  // namespace
}  // namespace plenum::schedule
