#include "plenum/describe/tensor_parallel.h"

#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/parameter_table.h"

namespace plenum::describe {
namespace {

ModelDescription model_of(std::int64_t vocabulary, std::int64_t num_heads, std::int64_t mlp_width) {
  ModelConfig config = preset("bert-tiny");
  config.vocabulary = vocabulary;
  config.num_heads = num_heads;
  config.mlp_width = mlp_width;
  config.has_next_sentence = true;
  return describe_bert(config);
}

TEST(TensorParallelSlice, SlicesOfAllRanksMakeUpEveryTensorOnce) {
  const ModelDescription model = model_of(30'522, 4, 500);
  const ParameterTable whole(model);
  for (const std::size_t size : {1UL, 2UL, 4UL}) {
    std::vector<std::vector<int>> counts;
    for (const Parameter& parameter : whole.parameters()) {
      counts.emplace_back(static_cast<std::size_t>(parameter.num_elements()), 0);
    }
    for (std::size_t index = 0; index < size; ++index) {
      const ParameterTable table(tensor_parallel_slice(model, {index, size}));
      ASSERT_EQ(table.parameters().size(), whole.parameters().size());
      for (std::size_t i = 0; i < counts.size(); ++i) {
        EXPECT_EQ(table[i].name, whole[i].name);
        EXPECT_EQ(table[i].whole_shape(), whole[i].shape) << whole[i].name;
        EXPECT_EQ(table[i].slice.has_value(), size > 1 && whole[i].split_dim.has_value()) << whole[i].name;
        if (!table[i].slice && index > 0) continue;
        for_each_run(table[i], [&](std::int64_t first, std::int64_t own, std::int64_t count) {
          EXPECT_LE(own + count, table[i].num_elements());
          for (std::int64_t at = 0; at < count; ++at) ++counts[i][static_cast<std::size_t>(first + at)];
        });
      }
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      for (const int count : counts[i]) ASSERT_EQ(count, 1) << whole[i].name << " of " << size << " ranks";
    }
  }
}

TEST(TensorParallelSlice, DividesWordsEvenlyInMultiplesOfEight) {
  const ModelDescription model = model_of(30'522, 2, 512);
  const ModelDescription first = tensor_parallel_slice(model, {0, 2});
  const ModelDescription second = tensor_parallel_slice(model, {1, 2});
  EXPECT_EQ(first.embedding.words.num_rows, 15'256);
  EXPECT_EQ(second.embedding.words.num_rows, 15'266);
  EXPECT_EQ(second.embedding.words.slice, (Slice{15'256, 30'522}));
  EXPECT_EQ(second.heads.front().output.out_width, 15'266);
  EXPECT_EQ(second.vocabulary(), 30'522);
}

TEST(TensorParallelSlice, DividesAttentionByWholeHeads) {
  const ModelDescription model = model_of(1000, 4, 512);
  const Attention attention = tensor_parallel_slice(model, {3, 4}).layers.front().attention;
  EXPECT_EQ(attention.num_heads, 1);
  EXPECT_EQ(attention.first_head, 3);
  EXPECT_EQ(attention.projected_width(), 3 * attention.head_width);
  EXPECT_EQ(attention.output.slice, (Slice{3 * attention.head_width, model.width}));
}

TEST(TensorParallelSlice, RefusesWhatItCannotDivideInOneLine) {
  try {
    tensor_parallel_slice(model_of(1000, 2, 512), {0, 4});
    FAIL() << "two heads were divided by four";
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(), "--tp must divide the number of attention heads, and 4 does not divide 2");
  }
  EXPECT_THROW(tensor_parallel_slice(model_of(1000, 4, 3), {0, 4}), base::UserError);
}

}  // namespace
}  // namespace plenum::describe
