#include "plenum/memory/hidden_matrices.h"

#include <gtest/gtest.h>

#include "plenum/describe/bert.h"

#include "tests/support/modern_encoder.h"

namespace plenum::memory {
namespace {

using describe::ParameterTable;
using workspace::FlatMatrices;

TEST(HiddenMatrices, OfBertAreSixGroupsWithAMatrixOfEveryLayer) {
  const ParameterTable table(describe::describe_bert(describe::preset("bert-mini")));
  const std::vector<FlatMatrices> groups = hidden_matrices(table);
  ASSERT_EQ(groups.size(), 6U);
  std::int64_t num_wide = 0;
  std::int64_t num_tall = 0;
  for (const FlatMatrices& group : groups) {
    EXPECT_EQ(group.count, 4);
    EXPECT_TRUE(group.is_decayed);
    num_wide += group.columns == 1024 ? 1 : 0;
    num_tall += group.rows == 1024 ? 1 : 0;
  }
  EXPECT_EQ(num_wide, 1);
  EXPECT_EQ(num_tall, 1);
}

/// Every element that belongs to a matrix.
std::vector<bool> covered(const ParameterTable& table, const std::vector<FlatMatrices>& groups) {
  std::vector<bool> is_covered(static_cast<std::size_t>(table.num_elements()));
  for (const FlatMatrices& group : groups) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      for (std::int64_t element = 0; element < group.num_elements(); ++element) {
        auto&& mark = is_covered[static_cast<std::size_t>(group.begin_of(i) + element)];
        EXPECT_FALSE(mark);
        mark = true;
      }
    }
  }
  return is_covered;
}

TEST(HiddenMatrices, HoldTheWeightsOfLayersOnceAndNothingElse) {
  for (const ParameterTable& table :
       {ParameterTable(describe::describe_bert(describe::preset("bert-tiny"))),
        ParameterTable(test::describe_modern_encoder(
            {.vocabulary = 100, .width = 128, .num_layers = 3, .num_heads = 2}))}) {
    const std::vector<bool> is_covered = covered(table, hidden_matrices(table));
    for (const describe::Parameter& parameter : table.parameters()) {
      for (std::int64_t i = parameter.begin; i < parameter.end(); ++i) {
        ASSERT_EQ(is_covered[static_cast<std::size_t>(i)], describe::is_hidden_matrix(parameter))
            << parameter.name;
      }
    }
  }
}

TEST(HiddenMatrices, OfALayerLieInTheOrderOfItsMaps) {
  for (const ParameterTable& table :
       {ParameterTable(describe::describe_bert(describe::preset("bert-tiny"))),
        ParameterTable(test::describe_modern_encoder(
            {.vocabulary = 100, .width = 128, .num_layers = 3, .num_heads = 2}))}) {
    std::vector<FlatMatrices> of_layers;
    for (std::size_t layer = 0; layer < table.model().layers.size(); ++layer) {
      const std::vector<FlatMatrices> matrices = matrices_of_layer(table, layer);
      const std::vector<describe::FactorShape> shapes = factor_shapes(table.model().layers[layer]);
      ASSERT_EQ(matrices.size(), shapes.size());
      for (std::size_t map = 0; map < shapes.size(); ++map) {
        EXPECT_EQ(matrices[map].rows, shapes[map].out_width);
        EXPECT_EQ(matrices[map].columns, shapes[map].in_width);
      }
      of_layers.insert(of_layers.end(), matrices.begin(), matrices.end());
    }
    EXPECT_EQ(covered(table, of_layers), covered(table, hidden_matrices(table)));
  }
}

TEST(HiddenMatrices, OfOneTensorWithQueriesKeysAndValuesAreThree) {
  const ParameterTable table(
      test::describe_modern_encoder({.vocabulary = 100, .width = 128, .num_layers = 2, .num_heads = 2}));
  std::int64_t num_square = 0;
  for (const FlatMatrices& group : hidden_matrices(table))
    num_square += group.rows == 128 && group.columns == 128 ? group.count : 0;
  EXPECT_EQ(num_square, 2 * 4);  // and the output's
}

}  // namespace
}  // namespace plenum::memory
