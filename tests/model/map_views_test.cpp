#include "plenum/model/map_views.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/model/model_run.h"
#include "tests/reference/linear.h"
#include "tests/support/test_sequences.h"

namespace plenum::model {
namespace {

constexpr std::size_t kNumMaps = 6;

/// Some columns of a matrix.
std::vector<double> columns_of(const MapColumns& columns, std::int64_t width) {
  const std::span<const float> values = columns.x_TW.span<float>();
  std::vector<double> chosen;
  for (std::int64_t row = 0; row < columns.x_TW.size(0); ++row) {
    const auto begin = values.begin() + row * columns.x_TW.size(1) + columns.first_column;
    chosen.insert(chosen.end(), begin, begin + width);
  }
  return chosen;
}

// What K-FAC makes its factors of is what the gradients of weights are made of.
TEST(MapViews, ErrorsTimesInputsAreTheGradientsOfWeights) {
  const describe::ModelConfig config{.vocabulary = 31,
                                     .width = 16,
                                     .num_layers = 2,
                                     .num_heads = 2,
                                     .mlp_width = 24,
                                     .max_positions = 12,
                                     .hidden_dropout = 0.1,
                                     .attention_dropout = 0.1,
                                     .has_next_sentence = true};
  const auto sequences = test::random_sequences(5, 12, 31, 2);
  const batch::MicroBatch batch = test::lay_out(sequences, 12);
  ModelRun run(config, test::capacity_of(batch), schedule::Recomputation::None, 1, nullptr,
               BackwardForm::WholeWithErrors);
  const base::RandomFunction random(7, base::Purpose::Initialisation);
  for (std::size_t i = 0; i < run.weights().size(); ++i)
    run.weights()[i] = static_cast<float>(base::to_unit_interval(random(i)) - 0.5);
  const DropoutSource dropout{.is_on = true, .key = {}};
  run.forward(batch, dropout);
  run.backward(batch, {}, dropout);
  const std::int64_t num_read = batch::total(batch.work().labels);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const LayerRows rows{
        .attended = batch.num_rows, .behind = layer == 1 ? num_read : batch.num_rows, .read = num_read};
    for (std::size_t map = 0; map < kNumMaps; ++map) {
      const tensor::TensorView gradient = map_weight_gradient(run.gradients_by_part().layers[layer], map);
      const MapColumns input = run.input_of(batch, layer, map, rows);
      const std::vector<double> x = columns_of(input, gradient.size(1));
      const std::vector<double> dy = columns_of(map_error(layer, map, run.kept(), rows), gradient.size(0));
      const std::vector<double> expected = reference::linear_dw(
          {static_cast<std::size_t>(input.x_TW.size(0)), static_cast<std::size_t>(gradient.size(1)),
           static_cast<std::size_t>(gradient.size(0))},
          x, dy);
      double largest = 0;
      for (const double value : expected) largest = std::max(largest, std::abs(value));
      EXPECT_GT(largest, 0);
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(gradient.span<float>()[i], expected[i], 1e-5 * largest) << layer << " " << map;
      EXPECT_EQ(is_behind_attention(map), map > 2);
    }
  }
}

}  // namespace
}  // namespace plenum::model
