// Training whose ranks divide the optimizer's work among themselves.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <gtest/gtest.h>

#include "plenum/batch/step_batch.h"

#include "tests/pipeline/bert_run.h"
#include "tests/support/expect_user_error.h"

namespace plenum::pipeline {
namespace {

using optim::OptimizerKind;
using plenum::test::capacity_of;
using plenum::test::random_sequences;
using plenum::test::TestSequence;
using schedule::Recomputation;
using schedule::Sharding;

const std::vector<TestSequence>& sequences() {
  static const std::vector<TestSequence> all = random_sequences(11, 24, 97, 5);
  return all;
}

/// A way to train, with dropout on.
struct Training {
  std::size_t num_ranks = 1;
  Sharding sharding = Sharding::None;
  OptimizerKind optimizer = OptimizerKind::AdamW;
  std::size_t num_micro_batches = 2;  ///< of each rank
  std::int64_t row_length = 0;
  double clip_norm = 1;
  Recomputation recompute = Recomputation::None;
  WordTable words = WordTable::InHalves;

  batch::StepBatch batch(std::uint64_t step) const {
    return deal_out(step, sequences(), num_ranks * num_micro_batches, row_length);
  }
  schedule::Schedule schedule() const {
    return bert_schedule(small_model(0.1), num_ranks, num_micro_batches, recompute, sharding, optimizer,
                         words);
  }
  BertProgramOptions options() const {
    return {.model = small_model(0.1),
            .capacity = capacity_of(batch(0).micro_batches),
            .optimizer = {.kind = optimizer, .clip_norm = clip_norm},
            .seed = 17};
  }
  BertRun run() const { return {schedule(), options()}; }
};

std::vector<StepOutcome> train(BertRun& run, const Training& training, std::uint64_t num_steps) {
  std::vector<StepOutcome> outcomes;
  for (std::uint64_t step = 0; step < num_steps; ++step) outcomes.push_back(run.step(training.batch(step)));
  return outcomes;
}

/// Of every parameter, the gradient that its owner has.
std::vector<float> gathered_gradients(BertRun& run, std::size_t num_ranks) {
  std::vector<float> whole(static_cast<std::size_t>(run.program().parameters().num_elements()),
                           std::numeric_limits<float>::quiet_NaN());
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    const std::vector<float> own = run.gradients(rank);
    const bool is_of_shard = own.size() < whole.size();
    for (const describe::ParameterShard::Bucket& bucket : run.program(rank).shard().buckets()) {
      std::copy_n(own.begin() + (is_of_shard ? bucket.begin : bucket.own.begin), bucket.num_own(),
                  whole.begin() + bucket.own.begin);
    }
  }
  return whole;
}

void expect_same_gradients(const describe::ParameterTable& table, const std::vector<float>& actual,
                           const std::vector<float>& expected) {
  for (const describe::Parameter& parameter : table.parameters()) {
    double largest = 0;
    double error = 0;
    for (auto i = static_cast<std::size_t>(parameter.begin); i < static_cast<std::size_t>(parameter.end());
         ++i) {
      largest = std::max(largest, std::abs(double{expected[i]}));
      const double difference = std::abs(double{actual[i]} - double{expected[i]});
      error = difference <= error ? error : difference;
    }
    EXPECT_LE(error, 1e-5 * largest) << parameter.name;
  }
}

/// As on one rank: the gradients of the first step, then the losses of twenty.
void expect_same_training(const Training& sharded) {
  Training alone = sharded;
  alone.num_ranks = 1;
  alone.sharding = Sharding::None;
  BertRun expected = alone.run();
  BertRun actual = sharded.run();
  std::vector<StepOutcome> expected_outcomes{expected.step(alone.batch(0))};
  std::vector<StepOutcome> outcomes{actual.step(sharded.batch(0))};
  expect_same_gradients(expected.program().parameters(), gathered_gradients(actual, sharded.num_ranks),
                        expected.gradients());
  EXPECT_NEAR(outcomes[0].gradient_norm, expected_outcomes[0].gradient_norm,
              1e-5 * expected_outcomes[0].gradient_norm);
  for (std::uint64_t step = 1; step < 20; ++step) {
    expected_outcomes.push_back(expected.step(alone.batch(step)));
    outcomes.push_back(actual.step(sharded.batch(step)));
  }
  for (std::size_t step = 0; step < 20; ++step) {
    const double loss = expected_outcomes[step].loss();
    EXPECT_NEAR(outcomes[step].loss(), loss, 1e-4 * loss) << "step " << step;
  }
  EXPECT_LT(outcomes.back().loss(), outcomes.front().loss());
}

constexpr Sharding kShardings[] = {Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters};

TEST(ShardedBert, TrainsAsOneRankDoes) {
  for (const Sharding sharding : kShardings) {
    for (const std::size_t num_ranks : {2, 4}) {
      for (const OptimizerKind optimizer : {OptimizerKind::AdamW, OptimizerKind::Lamb}) {
        SCOPED_TRACE(testing::Message()
                     << num_ranks << " ranks" << (optimizer == OptimizerKind::Lamb ? ", LAMB" : ""));
        expect_same_training({.num_ranks = num_ranks, .sharding = sharding, .optimizer = optimizer});
      }
    }
    expect_same_training({.num_ranks = 2, .sharding = sharding, .row_length = 24});
    expect_same_training({.num_ranks = 3, .sharding = sharding, .recompute = Recomputation::Full});
  }
}

TEST(ShardedBert, WithoutClippingHasTheBytesOfReplicas) {
  for (const WordTable words : {WordTable::Whole, WordTable::InHalves}) {
    Training training{.num_ranks = 4, .num_micro_batches = 1, .clip_norm = 0, .words = words};
    BertRun expected = training.run();
    train(expected, training, 3);
    for (const Sharding sharding : kShardings) {
      // Where every micro-batch is reduced by itself, the word table is summed as a whole.
      if (words == WordTable::InHalves && sharding != Sharding::Optimizer) continue;
      training.sharding = sharding;
      BertRun actual = training.run();
      train(actual, training, 3);
      for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(actual.weights(rank), expected.weights());
    }
  }
}

TEST(ShardedBert, UpdatesByLambToRoundingWhatReplicasUpdate) {
  Training training{.num_ranks = 4, .optimizer = OptimizerKind::Lamb};
  BertRun expected = training.run();
  train(expected, training, 3);
  const std::vector<float> weights = expected.weights();
  for (const Sharding sharding : kShardings) {
    training.sharding = sharding;
    BertRun actual = training.run();
    train(actual, training, 3);
    const std::vector<float> sharded = actual.weights();
    for (const describe::Parameter& parameter : actual.program().parameters().parameters()) {
      for (auto i = static_cast<std::size_t>(parameter.begin); i < static_cast<std::size_t>(parameter.end());
           ++i) {
        ASSERT_NEAR(sharded[i], weights[i], 1e-6) << parameter.name;
      }
    }
  }
}

TEST(ShardedBert, GivesTheSameBytesTwiceAndOnEveryRank) {
  for (const Sharding sharding : kShardings) {
    for (const OptimizerKind optimizer : {OptimizerKind::AdamW, OptimizerKind::Lamb}) {
      const Training training{.num_ranks = 3, .sharding = sharding, .optimizer = optimizer};
      BertRun first = training.run();
      BertRun second = training.run();
      train(first, training, 3);
      train(second, training, 3);
      for (std::size_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(first.weights(0), second.weights(rank));
        EXPECT_EQ(first.second_moments(rank), second.second_moments(rank));
        EXPECT_EQ(first.outcome(2, 0).gradient_norm, second.outcome(2, rank).gradient_norm);
      }
    }
  }
}

TEST(ShardedBert, SkipsEverywhereWhatIsNotFiniteInOneShard) {
  for (const Sharding sharding : kShardings) {
    for (const OptimizerKind optimizer : {OptimizerKind::AdamW, OptimizerKind::Lamb}) {
      const Training training{.num_ranks = 2, .sharding = sharding, .optimizer = optimizer};
      BertRun run = training.run();
      train(run, training, 1);
      const std::vector<float> sound = run.weights(0);
      const std::vector<float> moments = run.second_moments(0);
      float& spoilt = run.program(1).buffers().weights_N.span<float>()[5];
      const float before = std::exchange(spoilt, std::numeric_limits<float>::quiet_NaN());
      run.step(training.batch(1));
      spoilt = before;
      for (const std::size_t rank : {0, 1}) {
        EXPECT_TRUE(run.outcome(1, rank).is_skipped);
        EXPECT_EQ(run.outcome(1, rank).num_updates, 1U);
      }
      EXPECT_EQ(run.second_moments(0), moments);
      EXPECT_EQ(run.weights(0), sound);
      EXPECT_FALSE(run.step(training.batch(2)).is_skipped);
      EXPECT_NE(run.weights(0), sound);
      EXPECT_EQ(run.weights(0), run.weights(1));
    }
  }
}

std::size_t bytes_of(const tensor::MemoryLayout& layout, std::string_view purpose) {
  for (const tensor::MemoryLayout::Line& line : layout.lines()) {
    if (line.purpose == purpose) return line.bytes;
  }
  return 0;
}

TEST(ShardedBert, KeepsTheMomentsOfItsShardAlone) {
  constexpr std::size_t kNumRanks = 4;
  const std::size_t scalars = 256;
  Training training{.num_ranks = kNumRanks};
  BertRun replicated = training.run();
  training.sharding = Sharding::Optimizer;
  BertRun run = training.run();
  const auto N = static_cast<std::size_t>(run.program().parameters().num_elements());
  EXPECT_EQ(bytes_of(replicated.program().memory(), "optimizer state"), 8 * N + scalars);
  std::size_t shards = 0;
  for (std::size_t rank = 0; rank < kNumRanks; ++rank) {
    const tensor::MemoryLayout& taken = run.program(rank).memory();
    const tensor::MemoryLayout planned =
        BertProgram::plan_memory(training.schedule(), schedule::Rank::at(rank), training.options());
    EXPECT_EQ(taken.num_bytes(), planned.num_bytes());
    const auto own = static_cast<std::size_t>(run.program(rank).shard().num_elements());
    // Two buckets and the word table, whose parts begin at multiples of 128 elements.
    EXPECT_LE(own, N / kNumRanks + 3 * 128);
    EXPECT_EQ(bytes_of(taken, "optimizer state"), 2 * ((4 * own + 255) / 256 * 256) + scalars);
    EXPECT_EQ(taken.num_bytes() + bytes_of(replicated.program().memory(), "optimizer state"),
              replicated.program().memory().num_bytes() + bytes_of(taken, "optimizer state"));
    shards += own;
  }
  EXPECT_EQ(shards, N);
}

TEST(ShardedBert, KeepsTheGradientsOfItsShardAndOfBucketsInFlight) {
  constexpr std::size_t kNumRanks = 4;
  const Training training{.num_ranks = kNumRanks, .sharding = Sharding::Gradients};
  BertRun run = training.run();
  for (std::size_t rank = 0; rank < kNumRanks; ++rank) {
    const tensor::MemoryLayout& taken = run.program(rank).memory();
    const tensor::MemoryLayout planned =
        BertProgram::plan_memory(training.schedule(), schedule::Rank::at(rank), training.options());
    EXPECT_EQ(taken.num_bytes(), planned.num_bytes());
    const auto own = static_cast<std::size_t>(run.program(rank).shard().num_elements());
    const auto rounded = [](std::size_t elements) { return (4 * elements + 255) / 256 * 256; };
    // Two buckets, of which neither shares its place.
    std::size_t expected = rounded(own);
    for (const describe::ParameterShard::Bucket& bucket : run.program(rank).shard().buckets())
      expected += rounded(static_cast<std::size_t>(bucket.elements.end - bucket.elements.begin));
    EXPECT_EQ(bytes_of(taken, "gradients"), expected);
    EXPECT_EQ(bytes_of(taken, "optimizer state"), 2 * rounded(own) + 256);
  }
}

TEST(ShardedBert, TrainsAsOneRankDoesWithManyBuckets) {
  // Six buckets share two places, but for the last.
  Training training{.num_ranks = 2, .optimizer = OptimizerKind::Lamb};
  describe::ModelConfig model = small_model(0.1);
  model.num_layers = 6;
  const auto run_of = [&](std::size_t num_ranks, Sharding sharding, Recomputation recompute) {
    training.num_ranks = num_ranks;
    BertProgramOptions options = training.options();
    options.model = model;
    const schedule::Schedule schedule = schedule::generator_named(num_ranks == 1 ? "single" : "data-parallel")
                                            .generate({.num_micro_batches = 2,
                                                       .num_replicas = num_ranks,
                                                       .stage_layers = {6},
                                                       .num_buckets = 6,
                                                       .recomputation = recompute,
                                                       .sharding = sharding,
                                                       .has_tensor_norms = true});
    BertRun run(schedule, options);
    std::vector<double> losses;
    for (const StepOutcome& outcome : train(run, training, 6)) losses.push_back(outcome.loss());
    return losses;
  };
  const std::vector<double> expected = run_of(1, Sharding::None, Recomputation::None);
  for (const Sharding sharding : {Sharding::Gradients, Sharding::Parameters}) {
    for (const Recomputation recompute : {Recomputation::None, Recomputation::Full}) {
      const std::vector<double> losses = run_of(3, sharding, recompute);
      for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-4 * expected[i]);
    }
  }
}

TEST(ShardedBert, KeepsTheParametersOfItsShardAndPlacesForGatheredOnes) {
  const Training training{.num_ranks = 4, .sharding = Sharding::Parameters};
  describe::ModelConfig model = small_model(0.1);
  model.num_layers = 6;
  BertProgramOptions options = training.options();
  options.model = model;
  const schedule::Schedule schedule =
      schedule::generator_named("data-parallel")
          .generate(
              {.num_replicas = 4, .stage_layers = {6}, .num_buckets = 6, .sharding = Sharding::Parameters});
  const BertProgram program(schedule, schedule::Rank{1}, options);
  const auto rounded = [](std::int64_t elements) {
    return (4 * static_cast<std::size_t>(elements) + 255) / 256 * 256;
  };
  const auto size_of = [&](std::size_t bucket) {
    const auto [begin, end] = program.shard().buckets()[bucket].elements;
    return end - begin;
  };
  // The last layers come first; they have the head, the first ones the embeddings, all others are alike.
  const std::size_t places = rounded(size_of(0)) + rounded(size_of(1)) + rounded(size_of(5));
  EXPECT_GT(size_of(0), size_of(2));
  EXPECT_EQ(size_of(1), size_of(3));
  EXPECT_EQ(bytes_of(program.memory(), "parameters"), rounded(program.shard().num_elements()) + places);
  EXPECT_EQ(bytes_of(program.memory(), "gradients"), rounded(program.shard().num_elements()) + places);
}

TEST(ShardedBert, RefusesLambWithoutTheNormsOfWholeTensors) {
  const Training training{.num_ranks = 2, .sharding = Sharding::Optimizer};
  BertProgramOptions options = training.options();
  options.optimizer.kind = OptimizerKind::Lamb;
  plenum::test::expect_user_error([&] { BertProgram::plan_memory(training.schedule(), {}, options); },
                                  "norms of tensors");
}

}  // namespace
}  // namespace plenum::pipeline
