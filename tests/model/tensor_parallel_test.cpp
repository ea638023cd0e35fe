#include <cmath>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/batch/micro_batch.h"
#include "plenum/comm/local/local_world.h"
#include "plenum/model/bert.h"
#include "plenum/model/initialise.h"

#include "tests/model/model_run.h"
#include "tests/support/test_sequences.h"

namespace plenum::model {
namespace {

using describe::Parameter;
using plenum::test::capacity_of;
using plenum::test::lay_out;
using plenum::test::random_sequences;
using schedule::Recomputation;

// Neither words nor inner width are a multiple of the number of ranks.
const describe::ModelConfig kConfig{.vocabulary = 83,
                                    .width = 20,
                                    .num_layers = 3,
                                    .num_heads = 4,
                                    .mlp_width = 42,
                                    .max_positions = 12,
                                    .hidden_dropout = 0.2,
                                    .attention_dropout = 0.1,
                                    .has_next_sentence = true};

const DropoutSource kDropout{.is_on = true, .key = base::RandomFunction(9, base::Purpose::Dropout, 2).key()};
constexpr LossScale kScale{.masked = 0.25, .next_sentence = 0.5};
constexpr float kBefore = 0.01F;  // of gradients, which are added to

/// What a rank has after forward and backward.
struct RankResult {
  LossSums losses;
  std::vector<float> logits;  ///< [M, words here]
  std::vector<std::int32_t> predictions;
  std::vector<float> gradients;
  std::shared_ptr<const describe::ParameterTable> table;
};

/// Weights that no two elements have in common, by their place in the whole tensor.
void fill_weights(ModelRun& run) {
  for (const Parameter& parameter : run.table().parameters()) {
    const bool is_gamma = parameter.kind == describe::ParameterKind::NormWeight;
    for_each_run(parameter, [&](std::int64_t first, std::int64_t own, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        const double phase =
            static_cast<double>(first + i) * 0.7 + static_cast<double>(parameter.name.size());
        const double value = 0.4 * std::sin(phase * phase) + (is_gamma ? 1 : 0);
        run.weights()[static_cast<std::size_t>(parameter.begin + own + i)] = static_cast<float>(value);
      }
    });
  }
}

RankResult run_rank(const batch::MicroBatch& batch, Recomputation recompute, comm::Communicator* group) {
  ModelRun run(kConfig, capacity_of(batch), recompute, 1, group);
  fill_weights(run);
  std::fill(run.gradients().begin(), run.gradients().end(), kBefore);
  RankResult result{.losses = run.forward(batch, kDropout)};
  const auto logits = run.kept().heads[0].logits_MW.span<float>();
  const auto predictions = run.kept().heads[0].prediction_M.span<std::int32_t>();
  result.logits.assign(logits.begin(), logits.end());
  result.predictions.assign(predictions.begin(), predictions.end());
  run.backward(batch, kScale, kDropout);
  result.gradients.assign(run.gradients().begin(), run.gradients().end());
  result.table = std::make_shared<describe::ParameterTable>(run.table().model());
  return result;
}

std::vector<RankResult> run_ranks(const batch::MicroBatch& batch, std::size_t size,
                                  Recomputation recompute = Recomputation::None) {
  comm::local::LocalWorld world(size);
  std::vector<RankResult> results(size);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto group = world.communicator(base::Rank::at(rank));
      results[rank] = run_rank(batch, recompute, group.get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

/// A whole tensor's gradient, put together from what the ranks hold.
std::vector<float> whole_gradient(const std::vector<RankResult>& ranks, std::size_t index) {
  std::vector<float> whole(
      static_cast<std::size_t>((*ranks.front().table)[index].whole_shape().num_elements()), NAN);
  for (const RankResult& rank : ranks) {
    const Parameter& parameter = (*rank.table)[index];
    for_each_run(parameter, [&](std::int64_t first, std::int64_t own, std::int64_t count) {
      std::copy_n(rank.gradients.begin() + parameter.begin + own, count, whole.begin() + first);
    });
  }
  return whole;
}

double norm_of_difference(const std::vector<float>& one, const std::vector<float>& other) {
  double squares = 0;
  for (std::size_t i = 0; i < one.size(); ++i) squares += std::pow(double{one[i]} - double{other[i]}, 2);
  return std::sqrt(squares);
}

void expect_equal_to_one_rank(const std::vector<RankResult>& ranks, const RankResult& one) {
  const std::vector<float> zeros(one.gradients.size(), kBefore);
  for (const RankResult& rank : ranks) {
    EXPECT_NEAR(rank.losses.masked, one.losses.masked, 1e-5 * one.losses.masked);
    EXPECT_NEAR(rank.losses.next_sentence, one.losses.next_sentence, 1e-5 * one.losses.next_sentence);
    EXPECT_EQ(rank.losses.masked, ranks.front().losses.masked);
    EXPECT_EQ(rank.predictions, one.predictions);
  }
  for (std::size_t i = 0; i < one.table->parameters().size(); ++i) {
    const Parameter& parameter = (*one.table)[i];
    const std::vector<float> expected = whole_gradient({one}, i);
    const std::vector<float> before(expected.size(), kBefore);
    // A key's bias has no gradient; what was there before takes its share of the digits.
    const double norm = norm_of_difference(expected, before) + 0.01 * kBefore;
    EXPECT_LE(norm_of_difference(whole_gradient(ranks, i), expected), 1e-5 * norm) << parameter.name;
  }
}

void expect_logits_of_one_rank(const std::vector<RankResult>& ranks, const RankResult& one) {
  const auto V = static_cast<std::size_t>(kConfig.vocabulary);
  std::size_t first = 0;
  for (const RankResult& rank : ranks) {
    const auto here = static_cast<std::size_t>(rank.table->model().embedding.words.num_rows);
    for (std::size_t row = 0; row < one.logits.size() / V; ++row) {
      for (std::size_t word = 0; word < here; ++word) {
        ASSERT_NEAR(rank.logits[row * here + word], one.logits[row * V + first + word], 2e-5);
      }
    }
    first += here;
  }
  EXPECT_EQ(first, V);
}

TEST(TensorParallelism, GivesTheLossesLogitsAndGradientsOfOneRank) {
  for (const std::int64_t row_length : {0, 12}) {
    const batch::MicroBatch batch = lay_out(random_sequences(9, 12, 83, 2), row_length);
    const RankResult one = run_rank(batch, Recomputation::None, nullptr);
    for (const std::size_t size : {2UL, 4UL}) {
      SCOPED_TRACE(size);
      const std::vector<RankResult> ranks = run_ranks(batch, size);
      expect_equal_to_one_rank(ranks, one);
      expect_logits_of_one_rank(ranks, one);
    }
  }
}

TEST(TensorParallelism, RecomputesToTheSameBytes) {
  const batch::MicroBatch batch = lay_out(random_sequences(9, 12, 83, 2));
  const std::vector<RankResult> kept = run_ranks(batch, 2);
  for (const Recomputation recompute : {Recomputation::Mlp, Recomputation::Full}) {
    const std::vector<RankResult> again = run_ranks(batch, 2, recompute);
    for (std::size_t rank = 0; rank < 2; ++rank) EXPECT_EQ(again[rank].gradients, kept[rank].gradients);
  }
}

TEST(TensorParallelism, GivesTheSameBytesTwice) {
  const batch::MicroBatch batch = lay_out(random_sequences(9, 12, 83, 2));
  const std::vector<RankResult> first = run_ranks(batch, 4);
  const std::vector<RankResult> second = run_ranks(batch, 4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(first[rank].losses.masked, second[rank].losses.masked);
    EXPECT_EQ(first[rank].gradients, second[rank].gradients);
  }
}

TEST(TensorParallelism, GradientsOfWhatIsNotDividedAreTheSameBytesOnAllRanks) {
  const std::vector<RankResult> ranks = run_ranks(lay_out(random_sequences(9, 12, 83, 2), 12), 4);
  std::size_t num_compared = 0;
  for (std::size_t i = 0; i < ranks.front().table->parameters().size(); ++i) {
    if ((*ranks.front().table)[i].slice) continue;
    ++num_compared;
    for (const RankResult& rank : ranks) {
      EXPECT_EQ(whole_gradient({rank}, i), whole_gradient({ranks.front()}, i)) << (*rank.table)[i].name;
    }
  }
  EXPECT_GT(num_compared, 20U);
}

TEST(TensorParallelism, PassesOverMicroBatchesThatHeadsReadNothingOf) {
  batch::MicroBatch unread = lay_out(random_sequences(3, 12, 83, 2));
  unread.objectives = {};
  for (const RankResult& rank : run_ranks(unread, 2)) {
    EXPECT_EQ(rank.losses.masked, 0);
    for (const float value : rank.gradients) ASSERT_EQ(value, kBefore);
  }
}

TEST(TensorParallelism, SlicesBeginWithTheNumbersOfTheWholeModel) {
  const describe::ModelDescription model = describe::describe_bert(kConfig);
  base::ThreadPool pool(2);
  const auto initialised = [&](const describe::ParameterTable& table) {
    std::vector<float> weights(static_cast<std::size_t>(table.num_elements()), 9.0F);
    initialise_weights(table, 7, pool, tensor::TensorView(weights.data(), {table.num_elements()}));
    return weights;
  };
  const describe::ParameterTable whole(model);
  const std::vector<float> expected = initialised(whole);
  for (std::size_t index = 0; index < 4; ++index) {
    const describe::ParameterTable table(describe::tensor_parallel_slice(model, {index, 4}));
    const std::vector<float> weights = initialised(table);
    for (const Parameter& parameter : table.parameters()) {
      const std::int64_t begin = whole.at(parameter.name).begin;
      for_each_run(parameter, [&](std::int64_t first, std::int64_t own, std::int64_t count) {
        EXPECT_TRUE(std::equal(weights.begin() + parameter.begin + own,
                               weights.begin() + parameter.begin + own + count,
                               expected.begin() + begin + first))
            << parameter.name;
      });
    }
  }
}

}  // namespace
}  // namespace plenum::model
