#include "plenum/optim/kfac.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "plenum/describe/bert.h"
#include "plenum/kernels/step_scalars.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/tensor/arena.h"

#include "tests/ops/op_context.h"
#include "tests/reference/kronecker.h"

namespace plenum::optim {
namespace {

using kernels::InverseState;
using kernels::RowRange;
using ops::random_tensor;
using ops::TestTensor;

constexpr std::int64_t kWidth = 6;
constexpr std::int64_t kMlpWidth = 70;  // more than a panel of the inversion
constexpr MapId kQueries{0, 0};
constexpr MapId kMlpIn{0, 4};

describe::ModelConfig config() {
  return {.vocabulary = 11,
          .width = kWidth,
          .num_layers = 1,
          .num_heads = 1,
          .mlp_width = kMlpWidth,
          .max_positions = 4,
          .has_next_sentence = false};
}

/// K-FAC of a layer, in memory of its own, on the rows of `micro_batches` matrices.
class LayerKfac {
 public:
  explicit LayerKfac(const KfacOptions& options = {}, std::size_t num_micro_batches = 1)
      : model_(describe::describe_bert(config())),
        schedule_(schedule::with_periodic_refresh(
            schedule::generator_named("single").generate(
                {.num_micro_batches = num_micro_batches, .stage_layers = {1}}),
            schedule::KfacFiller(6), static_cast<std::size_t>(options.every.value_or(1)))),
        arena_(layout_of(options)),
        plan_(arena_),
        memory_(planned(options, plan_)),
        kfac_(options, model_, schedule_, memory_) {}

  /// Sums over the rows of both matrices, cut into micro-batches at these rows.
  void add(const MapId& map, TestTensor<float> inputs, TestTensor<float> errors, std::uint64_t step = 0,
           const std::vector<std::int64_t>& ends = {}) {
    std::vector<std::int64_t> all = ends;
    all.push_back(inputs.shape()[0]);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::array<RowRange, 1> rows = {{{begin, all[i]}}};
      kfac_.add_input(context_.stream(), map, {inputs, 0, rows, i, step});
      kfac_.add_error(context_.stream(), map, {errors, 0, rows, i, step});
      begin = all[i];
    }
  }
  void invert(const MapId& map, std::int64_t num_rows, std::uint64_t step = 0, std::size_t num_pieces = 1) {
    for (std::size_t piece = 0; piece < num_pieces; ++piece)
      kfac_.invert(context_.stream(), {map, {piece, num_pieces, step, step, num_rows}});
  }
  void invert_whole(const std::vector<Inversion>& inversions) {
    kfac_.invert_whole(context_.stream(), inversions);
  }
  void settle(std::uint64_t step, bool is_skipped) {
    std::array<double, kernels::kNumStepScalars> scalars{};
    scalars[kernels::index_of(kernels::StepScalar::IsSkipped)] = is_skipped ? 1 : 0;
    kfac_.settle(context_.stream(), step,
                 tensor::TensorView(scalars.data(), {static_cast<std::int64_t>(scalars.size())}));
  }
  /// All of a refresh of a map.
  void refresh(const MapId& map, const TestTensor<float>& inputs, const TestTensor<float>& errors,
               std::uint64_t step, bool is_skipped = false) {
    add(map, inputs, errors, step);
    invert(map, inputs.shape()[0], step);
    settle(step, is_skipped);
  }
  std::vector<float> preconditioned(const MapId& map, TestTensor<float> gradient) {
    const MapGradient one{map, gradient};
    kfac_.precondition(context_.stream(), {&one, 1});
    return gradient.values();
  }

  const memory::KfacMap& map(const MapId& id) const { return memory_.layers[id.layer].maps[id.map]; }
  std::vector<float> inverse_a(const MapId& id) const { return copied(map(id).inverse_a_DD); }
  Kfac& kfac() { return kfac_; }
  static std::vector<float> copied(const tensor::TensorView& view) {
    return {view.span<float>().begin(), view.span<float>().end()};
  }

 private:
  memory::KfacMemory planned(const KfacOptions& options, tensor::MemoryPlan& plan) const {
    return memory::plan_kfac_memory(
        model_, schedule_, {}, options.average ? memory::RunningAverages::Yes : memory::RunningAverages::No,
        plan);
  }
  tensor::MemoryLayout layout_of(const KfacOptions& options) const {
    tensor::MemoryPlan sizes;
    planned(options, sizes);
    return sizes.layout();
  }

  describe::ModelDescription model_;
  schedule::Schedule schedule_;
  ops::OpContext context_{std::size_t{1}};
  tensor::Arena arena_;
  tensor::MemoryPlan plan_;
  memory::KfacMemory memory_;
  Kfac kfac_;
};

std::vector<double> doubled(std::vector<double> lower, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = i + 1; j < size; ++j) lower[i * size + j] = lower[j * size + i];
  }
  return lower;
}

std::vector<double> times(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

void expect_near(const std::vector<float>& actual, const std::vector<double>& expected, double tolerance) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * largest) << i;
}

// The damped Fisher matrix is B (x) A in full: of the gradient's E D elements as one vector, row by row.
TEST(Kfac, SolvesTheDampedSystemOfTheWholeMap) {
  constexpr std::int64_t kRows = 50;
  const TestTensor<float> inputs = random_tensor({kRows, kWidth}, 1);
  const TestTensor<float> errors = random_tensor({kRows, kWidth}, 2, 1e-3);
  const TestTensor<float> gradient = random_tensor({kWidth, kWidth}, 3);
  LayerKfac layer({.damping = 0.03});
  layer.refresh(kQueries, inputs, errors, 0);

  constexpr std::size_t D = kWidth;
  std::vector<double> a =
      times(reference::second_moment(inputs.doubles(), D, 0, D, {{0, kRows}}), 1.0 / kRows);
  std::vector<double> b = times(reference::second_moment(errors.doubles(), D, 0, D, {{0, kRows}}), kRows);
  reference::damp(a, D, b, D, 0.03);
  constexpr std::size_t N = D * D;
  std::vector<double> fisher(N * N);
  for (std::size_t i = 0; i < N; ++i) {
    for (std::size_t j = 0; j < N; ++j) fisher[i * N + j] = b[i / D * D + j / D] * a[i % D * D + j % D];
  }
  const std::vector<double> inverse = reference::inverse(fisher, N);
  std::vector<double> solution(N);
  double before = 0;
  double after = 0;
  for (std::size_t i = 0; i < N; ++i) {
    for (std::size_t j = 0; j < N; ++j) solution[i] += inverse[i * N + j] * gradient.doubles()[j];
    before += std::pow(gradient.doubles()[i], 2);
    after += std::pow(solution[i], 2);
  }
  expect_near(layer.preconditioned(kQueries, gradient), times(solution, std::sqrt(before / after)), 1e-5);
}

TEST(Kfac, GivesTheSameSumsHoweverRowsAreCutIntoMicroBatches) {
  const TestTensor<float> inputs = random_tensor({40, kWidth}, 1);
  const TestTensor<float> errors = random_tensor({40, kMlpWidth}, 2);
  LayerKfac whole;
  whole.add(kMlpIn, inputs, errors);
  LayerKfac cut({}, 3);
  cut.add(kMlpIn, inputs, errors, 0, {7, 8});
  for (const MapId& map : {kMlpIn}) {
    const auto expected = LayerKfac::copied(whole.kfac().sum_b_EE(map, 0));
    expect_near(LayerKfac::copied(cut.kfac().sum_b_EE(map, 0)), {expected.begin(), expected.end()}, 1e-6);
    const auto inputs_of = LayerKfac::copied(whole.kfac().sum_a_DD(map, 0));
    expect_near(LayerKfac::copied(cut.kfac().sum_a_DD(map, 0)), {inputs_of.begin(), inputs_of.end()}, 1e-6);
  }
}

TEST(Kfac, AddsAnInputThatMapsShareOnce) {
  const TestTensor<float> inputs = random_tensor({9, kWidth}, 1);
  const TestTensor<float> errors = random_tensor({9, kWidth}, 2);
  LayerKfac layer;
  for (const std::size_t map : {2, 0, 1}) layer.add({0, map}, inputs, errors);
  const std::vector<double> expected =
      reference::second_moment(inputs.doubles(), kWidth, 0, kWidth, {{0, 9}});
  for (const std::size_t map : {0, 1, 2}) {
    const auto lower = LayerKfac::copied(layer.kfac().sum_a_DD({0, map}, 0));
    expect_near({lower.begin(), lower.begin() + 1}, {expected.front()}, 1e-6);
  }
}

TEST(Kfac, GivesTheSameBytesInAnyNumberOfPieces) {
  const TestTensor<float> inputs = random_tensor({100, kWidth}, 1);
  const TestTensor<float> errors = random_tensor({100, kMlpWidth}, 2);
  const auto inverses = [&](std::size_t num_pieces) {
    LayerKfac layer;
    layer.add(kMlpIn, inputs, errors);
    layer.invert(kMlpIn, 100, 0, num_pieces);
    return std::pair(layer.inverse_a(kMlpIn), LayerKfac::copied(layer.map(kMlpIn).inverse_b_EE));
  };
  const auto whole = inverses(1);
  EXPECT_TRUE(std::isfinite(whole.second.back()));
  EXPECT_NE(whole.second.back(), 0);
  for (const std::size_t num_pieces : {2, 3, 7, 100}) EXPECT_EQ(inverses(num_pieces), whole) << num_pieces;
}

TEST(Kfac, GivesTheSameBytesWhereManyMapsAreInvertedAtOnce) {
  const auto inverses = [&](bool is_whole) {
    LayerKfac layer;
    std::vector<Inversion> inversions;
    for (std::size_t map = 0; map < 6; ++map) {
      const std::int64_t in_width = layer.map({0, map}).inverse_a_DD.size(0);
      const std::int64_t out_width = layer.map({0, map}).inverse_b_EE.size(0);
      // One of them fails, for want of errors.
      const double scale = map == 3 ? 0 : 1;
      layer.add({0, map}, random_tensor({100, in_width}, 1 + map),
                random_tensor({100, out_width}, 10 + map, scale));
      inversions.push_back({{0, map}, {.num_rows = 100}});
    }
    if (is_whole) {
      layer.invert_whole(inversions);
    } else {
      for (const Inversion& inversion : inversions) layer.invert(inversion.map, 100);
    }
    std::vector<std::vector<float>> all;
    for (std::size_t map = 0; map < 6; ++map) {
      EXPECT_EQ(layer.map({0, map}).state_C.span<double>()[0], map == 3 ? 0 : 1) << map;
      if (map == 3) continue;
      all.push_back(LayerKfac::copied(layer.map({0, map}).inverse_a_DD));
      all.push_back(LayerKfac::copied(layer.map({0, map}).inverse_b_EE));
    }
    return all;
  };
  EXPECT_EQ(inverses(true), inverses(false));
}

TEST(Kfac, PassesGradientsOnUntilThereIsAnInverse) {
  LayerKfac layer;
  const TestTensor<float> gradient = random_tensor({kWidth, kWidth}, 3);
  EXPECT_EQ(layer.preconditioned(kQueries, gradient), gradient.values());
}

TEST(Kfac, DiscardsWhatASkippedStepMade) {
  const TestTensor<float> errors = random_tensor({30, kWidth}, 2);
  const TestTensor<float> gradient = random_tensor({kWidth, kWidth}, 3);
  LayerKfac layer({.average = 0.9});
  LayerKfac without({.average = 0.9});
  // The first refresh of all, one between, and none.
  layer.refresh(kQueries, random_tensor({30, kWidth}, 7), errors, 0, /*is_skipped=*/true);
  EXPECT_EQ(layer.preconditioned(kQueries, gradient), gradient.values());
  layer.refresh(kQueries, random_tensor({30, kWidth}, 1), errors, 1);
  layer.refresh(kQueries, random_tensor({30, kWidth}, 8), errors, 2, /*is_skipped=*/true);
  without.refresh(kQueries, random_tensor({30, kWidth}, 1), errors, 1);
  EXPECT_EQ(layer.inverse_a(kQueries), without.inverse_a(kQueries));
  layer.refresh(kQueries, random_tensor({30, kWidth}, 4), errors, 3);
  without.refresh(kQueries, random_tensor({30, kWidth}, 4), errors, 3);
  EXPECT_EQ(layer.inverse_a(kQueries), without.inverse_a(kQueries));
  EXPECT_NE(layer.preconditioned(kQueries, gradient), gradient.values());
}

TEST(Kfac, KeepsTheLastGoodInverseWhereOneFails) {
  const TestTensor<float> inputs = random_tensor({30, kWidth}, 1);
  LayerKfac layer;
  layer.refresh(kQueries, inputs, random_tensor({30, kWidth}, 2), 0);
  const std::vector<float> good = layer.inverse_a(kQueries);
  layer.refresh(kQueries, inputs, TestTensor<float>({30, kWidth}), 1);
  EXPECT_EQ(layer.inverse_a(kQueries), good);
  layer.refresh(kQueries, TestTensor<float>({30, kWidth}, NAN), random_tensor({30, kWidth}, 2), 2);
  EXPECT_EQ(layer.inverse_a(kQueries), good);
  layer.refresh(kQueries, TestTensor<float>({0, kWidth}), TestTensor<float>({0, kWidth}), 3);
  EXPECT_EQ(layer.inverse_a(kQueries), good);
  layer.refresh(kQueries, random_tensor({30, kWidth}, 5), random_tensor({30, kWidth}, 2), 4);
  EXPECT_NE(layer.inverse_a(kQueries), good);
}

TEST(Kfac, AveragesFactorsOverRefreshes) {
  constexpr double kKeep = 0.75;
  LayerKfac layer({.damping = 1e-3, .average = kKeep});
  std::vector<double> a(kWidth * kWidth);
  std::vector<double> b = a;
  for (std::uint64_t step = 0; step < 3; ++step) {
    const TestTensor<float> inputs = random_tensor({20, kWidth}, 10 + step);
    const TestTensor<float> errors = random_tensor({20, kWidth}, 20 + step, 1e-2);
    layer.refresh(kQueries, inputs, errors, step);
    const auto folded = [&](std::vector<double>& average, const TestTensor<float>& rows, double scale) {
      const auto moment = reference::second_moment(rows.doubles(), kWidth, 0, kWidth, {{0, 20}});
      for (std::size_t i = 0; i < moment.size(); ++i)
        average[i] = kKeep * average[i] + (1 - kKeep) * scale * moment[i];
    };
    folded(a, inputs, 1.0 / 20);
    folded(b, errors, 20);
    const double weight = 1 - std::pow(kKeep, static_cast<double>(step + 1));
    std::vector<double> damped_a = times(a, 1 / weight);
    std::vector<double> damped_b = times(b, 1 / weight);
    reference::damp(damped_a, kWidth, damped_b, kWidth, 1e-3);
    expect_near(layer.inverse_a(kQueries), doubled(reference::inverse(damped_a, kWidth), kWidth), 1e-4);
  }
}

}  // namespace
}  // namespace plenum::optim
