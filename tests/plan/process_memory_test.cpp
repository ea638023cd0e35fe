#include "plenum/plan/process_memory.h"

#include <gtest/gtest.h>

#include "plenum/describe/bert.h"
#include "plenum/plan/memory_explanation.h"
#include "plenum/plan/strategy_memory.h"

#include "tests/plan/made_up_run.h"

namespace plenum::plan {
namespace {

using test::MadeUpSteps;

describe::ModelDescription model_of(std::int64_t num_layers, std::int64_t vocabulary) {
  return describe::describe_bert({.vocabulary = vocabulary,
                                  .width = 128,
                                  .num_layers = num_layers,
                                  .num_heads = 2,
                                  .mlp_width = 512,
                                  .max_positions = 512});
}

class ProcessMemory : public testing::Test {
 protected:
  StrategyMemory memory_with(const Strategy& strategy, MemorySetting setting) const {
    const StepLimits limits = steps_.limits(strategy.replicas, strategy.micro_batches);
    setting.capacity = limits.capacity;
    return strategy_memory(
        strategy, model_,
        abridged_schedule(strategy, model_, steps_.typical(), limits.micro_batches_per_replica, 4), setting);
  }

  describe::ModelDescription model_ = model_of(4, 3000);
  MadeUpSteps steps_{{.items = 256, .max_length = 512}};
  Strategy strategy_{.replicas = 2, .micro_batches = {.tokens = 8192}};
};

TEST_F(ProcessMemory, IsTouchedInFullByTheLargestMicroBatches) {
  const batch::Capacity capacity = steps_.limits(2, strategy_.micro_batches).capacity;
  const LargestStep all{.micro_batch = capacity, .tokens = std::int64_t{1} << 40};
  EXPECT_EQ(memory_with(strategy_, {.largest = all}).peak.untouched_bytes, 0U);
}

TEST_F(ProcessMemory, IsTouchedInPartBySmallerMicroBatches) {
  const batch::Capacity capacity = steps_.limits(2, strategy_.micro_batches).capacity;
  LargestStep half{.micro_batch = capacity, .tokens = std::int64_t{1} << 40};
  half.micro_batch.labels[0] /= 2;
  const MemoryReport report = memory_with(strategy_, {.processes = Processes::One, .largest = half}).peak;
  // Of two ranks, half of the logits, in whole pages.
  const auto logits = static_cast<std::size_t>(capacity.labels[0]) * 3000 * sizeof(float);
  constexpr std::size_t kPages = std::size_t{8} << 20;
  EXPECT_GT(report.untouched_bytes + 2 * kPages, logits);
  EXPECT_LT(report.untouched_bytes, logits + logits / 4);
  EXPECT_EQ(report.expected_bytes() + report.untouched_bytes, report.most_bytes());
}

TEST_F(ProcessMemory, CountsWhatLiesOutsideForEveryProcess) {
  const StrategyMemory one = memory_with(strategy_, {.processes = Processes::One});
  EXPECT_EQ(one.peak.outside_bytes, kProgramBytes);
  EXPECT_EQ(one.total_bytes, one.peak_bytes());
  const StrategyMemory each = memory_with(strategy_, {.processes = Processes::EachRank});
  EXPECT_EQ(each.peak.outside_bytes, kProgramBytes + kMpiBytes);
  EXPECT_EQ(each.total_bytes, 2 * each.peak_bytes());
  constexpr std::size_t kKnown = 123'000'000;
  EXPECT_EQ(memory_with(strategy_, {.known_outside_bytes = kKnown}).peak.outside_bytes, kKnown);
}

TEST(LargestStep, HasTheMostOfEachKind) {
  const MicroBatchWork long_one{.rows = 10, .work = {.tokens = 9, .sequences = 1, .labels = {1}}};
  const MicroBatchWork many{.rows = 8, .work = {.tokens = 8, .sequences = 4, .labels = {4}}};
  const LargestStep largest = largest_step({{{long_one, many}}, {{long_one, {}}}}, {.max_length = 9});
  EXPECT_EQ(largest.micro_batch,
            (batch::Capacity{.rows = 10, .sequences = 4, .labels = {4}, .max_length = 9}));
  EXPECT_EQ(largest.tokens, 17);
  // Without a label its memory would be laid out by other code than the plan's.
  const MicroBatchWork unlabelled{.rows = 8, .work = {.tokens = 8, .sequences = 4}};
  EXPECT_EQ(largest_step({{{unlabelled}}}, {.labels = {7}}).micro_batch.labels.front(), 1);
}

class ExplainMemory : public testing::Test {
 protected:
  MemoryExplanation explained(const std::string& pipeline) {
    request_ = {.model = model_of(8, 500), .num_ranks = 4};
    StrategyGrid grid;
    grid.micro_batches = 8;
    for (const Candidate& candidate : enumerate(request_, grid, steps_, cluster_)) {
      const Strategy& strategy = candidate.strategy;
      const bool is_plain = strategy.recomputation == schedule::Recomputation::None;
      if (strategy.depth != 4 || strategy.pipeline != pipeline || !is_plain) continue;
      candidate_ = candidate;
      return explain_memory(candidate, request_, steps_, cluster_);
    }
    ADD_FAILURE() << "there is no such pipeline";
    return {};
  }
  /// As it is planned with these layers.
  std::size_t total_with(const std::vector<std::int64_t>& stage_layers) const {
    Strategy strategy = candidate_.strategy;
    strategy.stage_layers = stage_layers;
    std::size_t total = 0;
    for (const tensor::MemoryLayout& arena :
         rank_arenas(strategy, request_.model,
                     abridged_schedule(strategy, request_.model, steps_.typical(),
                                       candidate_.limits.micro_batches_per_replica, 2),
                     {.capacity = candidate_.limits.capacity}))
      total += arena.num_bytes();
    return total;
  }

  MadeUpSteps steps_{{.items = 32, .max_length = 128, .is_uniform = true}};
  plan::Cluster cluster_ = test::MadeUp(1).cluster(tensor::Device::Cpu);
  StrategyRequest request_;
  Candidate candidate_;

  ExplainMemory() {
    cluster_.threads = 1;
    cluster_.devices_per_node = 4;
  }
};

TEST_F(ExplainMemory, NamesACutOfAPipelineThatTakesLess) {
  const MemoryExplanation memory = explained("1f1b");
  ASSERT_EQ(memory.ranks.size(), 4U);
  std::size_t num_layers = 0;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_GE(memory.ranks[rank].num_alive, 4 - rank) << "1F1B keeps so many, messages beside them";
    num_layers += memory.ranks[rank].num_layers;
    EXPECT_LE(memory.ranks[rank].arena.num_bytes(), memory.ranks[memory.most].arena.num_bytes());
  }
  EXPECT_EQ(num_layers, 8U);
  ASSERT_TRUE(memory.better_cut);
  EXPECT_LT(memory.better_cut->total_bytes, memory.total_bytes);
  EXPECT_EQ(memory.better_cut->total_bytes, total_with(memory.better_cut->stage_layers));
}

TEST_F(ExplainMemory, HoldsAPipelineAgainstAsManyReplicas) {
  const MemoryExplanation memory = explained("gpipe");
  // Every stage keeps all 8 micro-batches of a step, where each of 4 replicas keeps one.
  ASSERT_TRUE(memory.without_pipeline_bytes);
  EXPECT_GT(memory.total_bytes, *memory.without_pipeline_bytes);
  EXPECT_EQ(memory.word_table_bytes, 4 * sizeof(float) * 500 * 128);
}

}  // namespace
}  // namespace plenum::plan
