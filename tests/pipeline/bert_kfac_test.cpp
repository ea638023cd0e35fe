#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/periodic_refresh.h"

#include "tests/pipeline/bert_run.h"
#include "tests/support/bert_golden.h"
#include "tests/support/expect_user_error.h"

namespace plenum::pipeline {
namespace {

using plenum::test::capacity_of;
using plenum::test::random_sequences;
using plenum::test::TestSequence;
using schedule::Recomputation;

constexpr std::size_t kNumMaps = 6;

const std::vector<TestSequence>& sequences() {
  static const std::vector<TestSequence> all = random_sequences(14, 24, 97, 5);
  return all;
}

/// One way to cut the same sequences up, and to train with K-FAC.
struct Arrangement {
  std::size_t num_ranks = 1;
  std::size_t num_micro_batches = 1;  ///< of each rank
  std::int64_t row_length = 0;
  Recomputation recompute = Recomputation::None;
  std::size_t num_threads = 1;
  optim::KfacOptions kfac = {};
  optim::OptimizerKind base = optim::OptimizerKind::Lamb;

  batch::StepBatch batch(std::uint64_t step) const {
    return deal_out(step, sequences(), num_ranks * num_micro_batches, row_length);
  }
  BertRun run(const describe::ModelConfig& model) const {
    const schedule::Schedule plain =
        bert_schedule(model, num_ranks, num_micro_batches, recompute, schedule::Sharding::None,
                      optim::OptimizerKind::AdamW, WordTable::Whole);
    const schedule::Schedule schedule = schedule::with_periodic_refresh(
        plain, schedule::KfacFiller(kNumMaps), static_cast<std::size_t>(kfac.every.value_or(1)));
    schedule::require_checked(schedule);
    return BertRun(schedule,
                   {.model = model,
                    .capacity = capacity_of(batch(0).micro_batches),
                    .optimizer = {.kind = optim::OptimizerKind::Kfac, .kfac_base = base, .kfac = kfac},
                    .seed = 17,
                    .num_threads = num_threads});
  }
};

/// The lower half of a matrix of the program.
std::vector<float> lower(BertRun& run, const tensor::TensorView& matrix, std::size_t rank = 0) {
  const std::vector<float> all = run.copy(matrix, rank);
  std::vector<float> half;
  for (std::int64_t i = 0; i < matrix.size(0); ++i) {
    const auto begin = all.begin() + i * matrix.size(0);
    half.insert(half.end(), begin, begin + i + 1);
  }
  return half;
}

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected, double tolerance,
                 const std::string& what) {
  double largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(double{value}));
  EXPECT_GT(largest, 0) << what;
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * largest) << what << ", element " << i;
}

/// A and B of all maps after a step.
void expect_same_sums(const Arrangement& arrangement, const describe::ModelConfig& model) {
  BertRun expected = Arrangement{}.run(model);
  BertRun actual = arrangement.run(model);
  expected.step(Arrangement{}.batch(0));
  actual.step(arrangement.batch(0));
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(model.num_layers); ++layer) {
    for (std::size_t map = 0; map < kNumMaps; ++map) {
      const memory::KfacSums& a = actual.program().kfac().layers[layer].sums.front();
      const memory::KfacSums& b = expected.program().kfac().layers[layer].sums.front();
      const std::string what = "layer " + std::to_string(layer) + ", map " + std::to_string(map);
      expect_near(lower(actual, a.a_DD[map]), lower(expected, b.a_DD[map]), 1e-5, "A of " + what);
      expect_near(lower(actual, a.b_EE[map]), lower(expected, b.b_EE[map]), 1e-5, "B of " + what);
    }
  }
}

std::vector<double> losses_of(const Arrangement& arrangement, const describe::ModelConfig& model,
                              std::uint64_t num_steps) {
  BertRun run = arrangement.run(model);
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < num_steps; ++step)
    losses.push_back(run.step(arrangement.batch(step), 1e-2).loss());
  return losses;
}

void expect_same_losses(const Arrangement& arrangement, const Arrangement& reference) {
  const describe::ModelConfig model = small_model(0.1);
  const std::vector<double> actual = losses_of(arrangement, model, 12);
  const std::vector<double> expected = losses_of(reference, model, 12);
  for (std::size_t step = 0; step < actual.size(); ++step)
    EXPECT_NEAR(actual[step], expected[step], 1e-4 * expected[step]) << "step " << step;
  EXPECT_LT(actual.back(), actual.front());
}

/// The lower half of a factor that PyTorch's inputs and errors of a map give (tools/make_kfac_golden.py).
std::vector<float> golden_factor(const std::string& name, std::int64_t size) {
  static const io::SafetensorsFile file(std::string(PLENUM_SOURCE_DIR) + "/tests/golden/kfac.safetensors");
  const io::SafetensorsTensor* const tensor = file.find(name);
  base::check(tensor != nullptr, "the golden file has no {}", name);
  std::vector<float> all(tensor->num_elements);
  file.read(*tensor, all);
  std::vector<float> half;
  for (std::int64_t i = 0; i < size; ++i)
    half.insert(half.end(), all.begin() + i * size, all.begin() + i * size + i + 1);
  return half;
}

std::vector<float> times(std::vector<float> values, double factor) {
  for (float& value : values) value = static_cast<float>(value * factor);
  return values;
}

TEST(BertKfac, HasTheFactorsOfPyTorchsInputsAndErrors) {
  const test::BertGolden golden;
  const describe::ModelConfig model = test::BertGolden::config();
  const batch::StepBatch batch = deal_out(0, golden.sequences(), 2);
  BertRun run(schedule::with_periodic_refresh(bert_schedule(model, 1, 2), schedule::KfacFiller(kNumMaps), 1),
              {.model = model,
               .capacity = capacity_of(batch.micro_batches),
               .optimizer = {.kind = optim::OptimizerKind::Kfac}});
  golden.read_weights(run.program().parameters(), run.program().buffers().weights_N.span<float>());
  run.step(batch);
  const std::array<std::string, kNumMaps> names = {"attention.self.query", "attention.self.key",
                                                   "attention.self.value", "attention.output.dense",
                                                   "intermediate.dense",   "output.dense"};
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const memory::KfacSums& sums = run.program().kfac().layers[layer].sums.front();
    for (std::size_t map = 0; map < kNumMaps; ++map) {
      const bool is_read_only = layer == 1 && map > 2;
      const auto rows =
          static_cast<double>(is_read_only ? batch::total(batch.global.labels) : batch.global.tokens);
      const std::string name = "bert.encoder.layer." + std::to_string(layer) + "." + names[map] + ".weight";
      expect_near(times(lower(run, sums.a_DD[map]), 1 / rows),
                  golden_factor("a:" + name, sums.a_DD[map].size(0)), 1e-5, "A of " + name);
      expect_near(times(lower(run, sums.b_EE[map]), rows), golden_factor("b:" + name, sums.b_EE[map].size(0)),
                  1e-5, "B of " + name);
    }
  }
}

TEST(BertKfac, HasTheSameFactorsForAnyNumberOfMicroBatches) {
  expect_same_sums({.num_micro_batches = 3}, small_model(0.1));
  expect_same_sums({.num_micro_batches = 7}, small_model(0.1));
}

TEST(BertKfac, LeavesPaddingOutOfItsFactors) {
  expect_same_sums({.row_length = 24}, small_model(0.1));
  expect_same_sums({.num_micro_batches = 3, .row_length = 24}, small_model(0.1));
}

TEST(BertKfac, HasTheSameFactorsWithRecomputation) {
  expect_same_sums({.num_micro_batches = 3, .recompute = Recomputation::Full}, small_model(0.1));
  expect_same_sums({.num_micro_batches = 3, .recompute = Recomputation::Mlp}, small_model(0.1));
}

TEST(BertKfac, HasTheSameFactorsOnSeveralRanks) {
  expect_same_sums({.num_ranks = 2, .num_micro_batches = 2}, small_model(0.1));
}

TEST(BertKfac, GivesTheSameBytesOnThreeThreads) {
  const describe::ModelConfig model = small_model(0.1);
  EXPECT_EQ(losses_of({.num_micro_batches = 2, .num_threads = 3}, model, 4),
            losses_of({.num_micro_batches = 2}, model, 4));
}

TEST(BertKfac, TrainsTheSameOnSeveralRanks) {
  const optim::KfacOptions every_second{.every = 2};
  expect_same_losses({.num_ranks = 2, .kfac = every_second}, {.kfac = every_second});
  expect_same_losses({.num_ranks = 4, .kfac = every_second}, {.kfac = every_second});
}

TEST(BertKfac, TrainsTheSameWithAveragesAndAdamOnTwoRanks) {
  const optim::KfacOptions averaged{.average = 0.8, .every = 3};
  expect_same_losses(
      {.num_ranks = 2, .num_micro_batches = 2, .kfac = averaged, .base = optim::OptimizerKind::AdamW},
      {.kfac = averaged, .base = optim::OptimizerKind::AdamW});
}

TEST(BertKfac, KeepsTheNormOfTheGradientAndChangesItsDirection) {
  const describe::ModelConfig model = small_model();
  const Arrangement arrangement;
  BertRun lamb(bert_schedule(model, 1, 1), {.model = model,
                                            .capacity = capacity_of(arrangement.batch(0).micro_batches),
                                            .optimizer = {.kind = optim::OptimizerKind::Lamb}});
  BertRun kfac = arrangement.run(model);
  const double norm = lamb.step(arrangement.batch(0)).gradient_norm;
  EXPECT_NEAR(kfac.step(arrangement.batch(0)).gradient_norm, norm, 1e-5 * norm);
  const std::vector<float> plain = lamb.gradients();
  const std::vector<float> preconditioned = kfac.gradients();
  for (const describe::Parameter& parameter : kfac.program().parameters().parameters()) {
    const auto begin = plain.begin() + parameter.begin;
    const bool is_same =
        std::equal(begin, begin + parameter.num_elements(), preconditioned.begin() + parameter.begin);
    const bool is_of_layer = parameter.name.find("encoder.layer") != std::string::npos;
    const bool is_matrix = parameter.shape.num_dims() == 2;
    EXPECT_EQ(is_same, !(is_of_layer && is_matrix)) << parameter.name;
  }
}

TEST(BertKfac, DiscardsTheFactorsOfASkippedStep) {
  const describe::ModelConfig model = small_model();
  const Arrangement arrangement{.num_ranks = 2};
  BertRun run = arrangement.run(model);
  run.step(arrangement.batch(0));
  const tensor::TensorView& inverse = run.program().kfac().layers[1].maps[0]
                                          ? run.program().kfac().layers[1].maps[0].inverse_a_DD
                                          : run.program().kfac().layers[1].maps[1].inverse_a_DD;
  const std::vector<float> before = run.copy(inverse);
  const std::vector<float> weights = run.weights();
  // The heads of one rank break: its layers' factors are finite, those of the other as well.
  std::vector<float> broken = weights;
  for (const describe::Parameter& parameter : run.program().parameters().parameters()) {
    if (parameter.name.ends_with("seq_relationship.bias"))
      broken[static_cast<std::size_t>(parameter.begin)] = NAN;
  }
  ASSERT_NE(std::ranges::count_if(broken, [](float value) { return std::isnan(value); }), 0);
  run.set_weights(broken, 1);
  EXPECT_TRUE(run.step(arrangement.batch(1)).is_skipped);
  EXPECT_EQ(run.copy(inverse), before);
  run.set_weights(weights, 1);
  EXPECT_FALSE(run.step(arrangement.batch(2)).is_skipped);
  EXPECT_NE(run.copy(inverse), before);
}

TEST(BertKfac, RefusesWhatItCannotDo) {
  const describe::ModelConfig model = small_model();
  const batch::Capacity capacity = capacity_of(Arrangement{}.batch(0).micro_batches);
  const auto refusal = [&](schedule::Sharding sharding, std::size_t num_slices) {
    const schedule::Schedule schedule =
        schedule::with_periodic_refresh(bert_schedule(model, 2, 1, Recomputation::None, sharding,
                                                      optim::OptimizerKind::AdamW, WordTable::Whole),
                                        schedule::KfacFiller(kNumMaps), 1);
    BertProgram(schedule, {},
                {.model = model,
                 .capacity = capacity,
                 .optimizer = {.kind = optim::OptimizerKind::Kfac, .kfac_base = optim::OptimizerKind::AdamW},
                 .tensor_parallel = {.index = 0, .size = num_slices}});
  };
  test::expect_user_error([&] { refusal(schedule::Sharding::None, 2); }, "leave out --tp");
  test::expect_user_error([&] { refusal(schedule::Sharding::Optimizer, 1); }, "leave out --shard");
}

}  // namespace
}  // namespace plenum::pipeline
