#include "plenum/pipeline/tied_rows.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/thread_pool.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/schedule/core/sharding.h"
#include "plenum/tensor/stream.h"

namespace plenum::pipeline {
namespace {

using schedule::Sharding;

constexpr std::int64_t kWidth = 8;

/// Of a model of so many words, or of a slice of it.
describe::ParameterTable table_of(std::int64_t num_words, const describe::TensorParallel& slice = {}) {
  const describe::ModelConfig model{.vocabulary = num_words,
                                    .width = kWidth,
                                    .num_layers = 1,
                                    .num_heads = 2,
                                    .mlp_width = 8,
                                    .max_positions = 4};
  return describe::ParameterTable(describe::tensor_parallel_slice(describe::describe_bert(model), slice));
}

/// Reads each of the words, which increase, in one row.
batch::MicroBatch reading(const std::vector<std::int32_t>& words) {
  batch::MicroBatch micro_batch;
  micro_batch.num_rows = static_cast<std::int64_t>(words.size());
  micro_batch.by_word.entries = words;
  for (std::int32_t i = 0; i <= static_cast<std::int32_t>(words.size()); ++i)
    micro_batch.by_word.starts.push_back(i);
  micro_batch.by_word.rows.assign(micro_batch.by_word.starts.begin(), micro_batch.by_word.starts.end() - 1);
  return micro_batch;
}

/// Two ranks that share a word table.
class TiedRowsTest : public testing::Test {
 protected:
  void lay_out(const describe::ParameterTable& table, std::vector<std::vector<batch::MicroBatch>> ranks,
               Sharding sharding = Sharding::None) {
    read_ = std::move(ranks);
    rows_.clear();
    rooms_.assign(2, std::vector<float>(20 * kWidth, -1.0F));
    for (std::size_t i = 0; i < 2; ++i) {
      const describe::ParameterShard whole(table);
      const std::vector<describe::ParameterShard::LayerRange> layers = {{base::LayerId{0}, base::LayerId{1}}};
      const describe::ParameterShard part(table, layers, i, 2, describe::ParameterShard::TiedTable::Apart);
      rows_.emplace_back(table, sharding == Sharding::None ? whole : part,
                         tensor::TensorView(rooms_[i].data(), {20, kWidth}), i, 2);
    }
    lay_out_again();
  }
  void lay_out_again() {
    std::vector<PartitionedElements> marks;
    for (std::size_t i = 0; i < 2; ++i) marks.push_back(rows_[i].mark(read_[i]));
    // What an all-gather does.
    const std::size_t half = marks[0].whole.bytes.size() / 2;
    std::ranges::copy(marks[0].whole.bytes.first(half), marks[1].whole.bytes.begin());
    std::ranges::copy(marks[1].whole.bytes.subspan(half),
                      marks[0].whole.bytes.begin() + static_cast<std::ptrdiff_t>(half));
    for (std::size_t i = 0; i < 2; ++i) rows_[i].lay_out(read_[i]);
  }
  /// The rows of a micro-batch's words.
  std::vector<std::int32_t> entries(std::size_t rank, std::size_t micro_batch) {
    batch::GroupedRows& words = read_[rank][micro_batch].by_word;
    const kernels::RowGroups groups = rows_[rank].by_row(
        micro_batch,
        {.entry_G = {words.entries.data(), {std::ssize(words.entries)}}, .start_G = {}, .row_R = {}});
    const auto found = groups.entry_G.span<std::int32_t>();
    return {found.begin(), found.end()};
  }

  std::vector<std::vector<batch::MicroBatch>> read_;
  std::vector<std::vector<float>> rooms_;
  std::vector<TiedRows> rows_;
};

TEST_F(TiedRowsTest, AreOfTheWordsThatAnyRankReads) {
  lay_out(table_of(100), {{reading({3, 64}), reading({7})}, {reading({3, 99})}});
  for (const TiedRows& rows : rows_) {
    EXPECT_EQ(rows.rows_RD().shape(), (tensor::Shape{4, kWidth}));
    EXPECT_TRUE(std::ranges::all_of(rows.rows_RD().span<float>(), [](float value) { return value == 0; }));
  }
  EXPECT_EQ(entries(0, 0), (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(entries(0, 1), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(entries(1, 0), (std::vector<std::int32_t>{0, 3}));
  // A step knows nothing of the one before.
  read_ = {{reading({5})}, {reading({})}};
  lay_out_again();
  EXPECT_EQ(rows_[1].rows_RD().size(0), 1);
  EXPECT_EQ(entries(0, 0), (std::vector<std::int32_t>{0}));
}

TEST_F(TiedRowsTest, LeaveWordsOfOtherSlicesOut) {
  lay_out(table_of(100, {.index = 1, .size = 2}), {{reading({3, 64, 99})}, {reading({7, 98})}});
  EXPECT_EQ(rows_[0].rows_RD().size(0), 3);
  EXPECT_EQ(entries(0, 0), (std::vector<std::int32_t>{3, 0, 2}));
  EXPECT_EQ(entries(1, 0), (std::vector<std::int32_t>{3, 1}));
}

/// What is added to the first element of each row of the table, where every row of the words has its number
/// from 1 on.
std::vector<float> added(const TiedRows& rows, const describe::ParameterTable& table) {
  const std::span<float> values = rows.rows_RD().span<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / kWidth + 1);
  std::vector<float> gradients(static_cast<std::size_t>(table.num_elements()), 10.0F);
  base::ThreadPool pool(1);
  const tensor::Stream stream(pool, {}, tensor::precision_of(tensor::Device::Cpu));
  rows.add_to(stream, {gradients.data(), {table.num_elements()}});
  std::vector<float> found;
  const describe::Parameter& words = *table.tied();
  for (std::int64_t word = 0; word < words.shape[0]; ++word) {
    found.push_back(gradients[static_cast<std::size_t>(words.begin + word * kWidth)] - 10.0F);
  }
  EXPECT_TRUE(std::ranges::all_of(gradients.begin(), gradients.begin() + words.begin,
                                  [](float value) { return value == 10.0F; }));
  return found;
}

TEST_F(TiedRowsTest, AreAddedToTheRowsOfTheirWords) {
  const describe::ParameterTable table = table_of(6);
  lay_out(table, {{reading({1, 4})}, {reading({4})}});
  for (const TiedRows& rows : rows_) EXPECT_EQ(added(rows, table), (std::vector<float>{0, 1, 0, 0, 2, 0}));
}

TEST_F(TiedRowsTest, AreAddedWhereTheRankUpdatesTheirWords) {
  // 32 words of 8 are two parts of 128 elements.
  const describe::ParameterTable table = table_of(32);
  lay_out(table, {{reading({1, 15})}, {reading({16, 30})}}, Sharding::Optimizer);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    std::vector<float> expected(32, 0.0F);
    expected[rank == 0 ? 1 : 16] = rank == 0 ? 1 : 3;
    expected[rank == 0 ? 15 : 30] = rank == 0 ? 2 : 4;
    EXPECT_EQ(added(rows_[rank], table), expected);
  }
}

TEST_F(TiedRowsTest, MayBeNone) {
  lay_out(table_of(6), {{reading({})}, {}});
  EXPECT_EQ(rows_[0].rows_RD().size(0), 0);
  EXPECT_EQ(rows_[1].rows_RD().size(0), 0);
}

}  // namespace
}  // namespace plenum::pipeline
