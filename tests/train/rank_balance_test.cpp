#include "plenum/train/rank_balance.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "plenum/data/corpus/dataset.h"
#include "plenum/train/attention_cost.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/starting_model.h"

#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SequenceCost, ComparesAttentionWithTheOperationsOfTheRest) {
  const describe::ModelConfig model = describe::preset("bert-base");
  const SequenceCost measured = measure_sequence_cost(model, 64);
  EXPECT_GT(measured.of_token, 0);
  EXPECT_GE(measured.of_pair, 0);
  // Halves of operations: all layers project, all but the last go on behind attention with every row.
  constexpr double kD = 768;
  constexpr double kF = 3072;
  const double of_token = 12 * 3 * kD * kD + 11 * (kD * kD + 2 * kD * kF);
  const double of_pair = 12 * 2 * kD;
  const SequenceCost as_operations{.of_token = of_token, .of_pair = of_pair};
  const SequenceCost dearer{.of_token = of_token, .of_pair = 3 * of_pair};
  EXPECT_NEAR(as_operations.attention_cost(model), 1, 1e-12);
  EXPECT_NEAR(dearer.attention_cost(model), 3, 1e-12);
}

TEST(SequenceCost, IsRoundedToAPowerOfTwo) {
  EXPECT_EQ(round_attention_cost(1.0), 1);
  EXPECT_EQ(round_attention_cost(1.3), 1);
  EXPECT_EQ(round_attention_cost(1.5), 2);
  EXPECT_EQ(round_attention_cost(0.4), 0.5);
  EXPECT_EQ(round_attention_cost(0), 1.0 / 64);
}

class RankBalanceTest : public TrainingTest {
 protected:
  /// What is chosen for a plan, and what is told of it.
  double choose(const RunOptions& options) {
    const PreparedData dataset(options.data.directory);
    const auto plan_with = [&](double cost) {
      return std::make_unique<RunPlan>(options, dataset, starting_model(options.model, dataset), std::nullopt,
                                       cost);
    };
    notes_.clear();
    return choose_attention_cost(*plan_with(1), plan_with, Processes(),
                                 [this](std::string_view line) { notes_.emplace_back(line); });
  }

  RunOptions large_steps(std::int64_t ranks) const {
    RunOptions given = options("run");
    given.run.ranks = ranks;
    given.run.threads = ranks;
    given.model = {};
    given.model.preset = "bert-large";
    given.data.global_batch = "60";
    return given;
  }

  std::vector<std::string> notes_;
};

TEST_F(RankBalanceTest, IsMeasuredWhereStepsAreLong) {
  const double chosen = choose(large_steps(2));
  EXPECT_EQ(round_attention_cost(chosen), chosen);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("times as long here as its operations")));
}

TEST_F(RankBalanceTest, IsNotMeasuredWithoutRanksOrInShortSteps) {
  EXPECT_EQ(choose(large_steps(1)), 1);
  EXPECT_THAT(notes_, IsEmpty());
  RunOptions given = options("run");
  given.run.ranks = 2;
  given.run.threads = 2;
  EXPECT_EQ(choose(given), 1);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(RankBalanceTest, IsKeptInTheRun) {
  RunOptions given = options("run", 4);
  given.run.ranks = 2;
  given.run.threads = 2;
  given.data.attention_cost = 40;
  run(given);
  EXPECT_EQ(describe_checkpoint(CheckpointStore(given.run.directory, 1).list().back()).state.attention_cost,
            40);
  given.data.attention_cost.reset();
  given.run.steps.amount = 8;
  run(given);
  EXPECT_EQ(describe_checkpoint(CheckpointStore(given.run.directory, 1).list().back()).state.attention_cost,
            40);
}

}  // namespace
}  // namespace plenum::train
