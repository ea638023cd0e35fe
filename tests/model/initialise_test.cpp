#include "plenum/model/initialise.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/describe/bert.h"

namespace plenum::model {
namespace {

describe::ModelConfig small_config() {
  describe::ModelConfig config = describe::preset("bert-tiny");
  config.vocabulary = 3000;
  config.pad_id = 2;
  return config;
}

std::vector<float> initialised(const describe::ModelConfig& config, std::uint64_t seed,
                               std::size_t num_threads = 1) {
  const describe::ParameterTable table(describe::describe_bert(config));
  std::vector<float> weights(static_cast<std::size_t>(table.num_elements()), 9.0F);
  base::ThreadPool pool(num_threads);
  initialise_weights(table, seed, pool, tensor::TensorView(weights.data(), {table.num_elements()}));
  return weights;
}

std::vector<float> part(const std::vector<float>& weights, const describe::Parameter& parameter) {
  return {weights.begin() + parameter.begin, weights.begin() + parameter.end()};
}

TEST(InitialiseWeights, FillsEveryTensorAsTheTableSays) {
  const describe::ModelConfig config = small_config();
  const describe::ParameterTable table(describe::describe_bert(config));
  const std::vector<float> weights = initialised(config, 1);
  EXPECT_EQ(std::count(weights.begin(), weights.end(), 9.0F), 0);
  for (const describe::Parameter& parameter : table.parameters()) {
    const std::vector<float> values = part(weights, parameter);
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
      sum += value;
      squares += double{value} * value;
    }
    const auto count = static_cast<double>(values.size());
    using enum describe::ParameterKind;
    if (parameter.kind == MapBias || parameter.kind == NormBias) {
      EXPECT_EQ(squares, 0) << parameter.name;
    } else if (parameter.kind == NormWeight) {
      EXPECT_EQ(std::count(values.begin(), values.end(), 1.0F), static_cast<std::ptrdiff_t>(count));
    } else {
      EXPECT_NEAR(sum / count, 0, 5 * 0.02 / std::sqrt(count)) << parameter.name;
      EXPECT_NEAR(squares / count, 0.02 * 0.02, 8 * 0.02 * 0.02 / std::sqrt(count)) << parameter.name;
    }
  }
}

TEST(InitialiseWeights, DrawsFromANormalDistribution) {
  const describe::ModelConfig config = small_config();
  const describe::ParameterTable table(describe::describe_bert(config));
  const std::vector<float> values =
      part(initialised(config, 1), table.at(table.model().embedding.words.weight));
  const auto share_within = [&](double deviations) {
    const auto inside = std::count_if(values.begin(), values.end(),
                                      [&](float value) { return std::abs(value) < 0.02 * deviations; });
    return static_cast<double>(inside) / static_cast<double>(values.size());
  };
  for (const double deviations : {0.5, 1.0, 2.0, 3.0}) {
    EXPECT_NEAR(share_within(deviations), std::erf(deviations / std::sqrt(2.0)), 2e-3) << deviations;
  }
}

TEST(InitialiseWeights, LeavesTheRowOfThePaddingZero) {
  const describe::ModelConfig config = small_config();
  const describe::ParameterTable table(describe::describe_bert(config));
  const std::vector<float> words =
      part(initialised(config, 1), table.at(table.model().embedding.words.weight));
  const auto row = words.begin() + config.pad_id * config.width;
  EXPECT_EQ(std::count(row, row + config.width, 0.0F), config.width);
  EXPECT_EQ(std::count(row - config.width, row, 0.0F), 0);
  EXPECT_EQ(std::count(row + config.width, row + 2 * config.width, 0.0F), 0);
}

TEST(InitialiseWeights, DependsOnSeedAndNameAloneNotOnThreadsOrOtherTensors) {
  const describe::ModelConfig config = small_config();
  describe::ModelConfig longer = config;
  longer.vocabulary = 3500;
  longer.num_layers += 1;
  longer.has_next_sentence = true;
  const describe::ParameterTable table(describe::describe_bert(config));
  const describe::ParameterTable longer_table(describe::describe_bert(longer));
  const std::vector<float> weights = initialised(config, 1);
  const std::vector<float> longer_weights = initialised(longer, 1);
  EXPECT_EQ(weights, initialised(config, 1, 3));
  EXPECT_NE(weights, initialised(config, 2));
  for (const describe::Parameter& parameter : table.parameters()) {
    const std::vector<float> values = part(weights, parameter);
    std::vector<float> others = part(longer_weights, longer_table[longer_table.index_of(parameter.name)]);
    others.resize(values.size());  // of more words the first
    EXPECT_EQ(values, others) << parameter.name;
  }
  const std::vector<describe::LinearMap>& projections = table.model().layers[0].attention.projections;
  EXPECT_NE(part(weights, table.at(projections[0].weight)), part(weights, table.at(projections[1].weight)));
}

}  // namespace
}  // namespace plenum::model
