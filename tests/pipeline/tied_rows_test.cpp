#include "plenum/pipeline/tied_rows.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/thread_pool.h"
#include "plenum/tensor/stream.h"

namespace plenum::pipeline {
namespace {

constexpr std::int64_t kWidth = 2;

describe::Parameter table_of(std::int64_t num_words, std::optional<describe::Slice> slice = {}) {
  return {.name = "words",
          .shape = {num_words, kWidth},
          .zero_row = {},
          .split_dim = 0,
          .slice = slice,
          .layer = {}};
}

/// Reads each of the words, which increase, in one row.
batch::MicroBatch reading(const std::vector<std::int32_t>& words) {
  batch::MicroBatch micro_batch{.num_rows = static_cast<std::int64_t>(words.size())};
  micro_batch.by_word.entries = words;
  for (std::int32_t i = 0; i <= static_cast<std::int32_t>(words.size()); ++i)
    micro_batch.by_word.starts.push_back(i);
  micro_batch.by_word.rows.assign(micro_batch.by_word.starts.begin(), micro_batch.by_word.starts.end() - 1);
  return micro_batch;
}

/// Two ranks that share a word table.
class TiedRowsTest : public testing::Test {
 protected:
  void lay_out(const describe::Parameter& table, std::vector<std::vector<batch::MicroBatch>> ranks) {
    read_ = std::move(ranks);
    rows_.clear();
    rooms_.assign(2, std::vector<float>(20 * kWidth, -1.0F));
    for (std::size_t i = 0; i < 2; ++i)
      rows_.emplace_back(table, tensor::TensorView(rooms_[i].data(), {20, kWidth}), i, 2);
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
  lay_out(table_of(50, describe::Slice{.begin = 50, .whole = 100}),
          {{reading({3, 64, 99})}, {reading({7, 98})}});
  EXPECT_EQ(rows_[0].rows_RD().size(0), 3);
  EXPECT_EQ(entries(0, 0), (std::vector<std::int32_t>{3, 0, 2}));
  EXPECT_EQ(entries(1, 0), (std::vector<std::int32_t>{3, 1}));
}

TEST_F(TiedRowsTest, AreAddedToTheRowsOfTheirWords) {
  lay_out(table_of(6), {{reading({1, 4})}, {reading({4})}});
  std::vector<float> rows = {1, 2, 3, 4};
  std::ranges::copy(rows, rows_[0].rows_RD().span<float>().begin());
  std::vector<float> gradient(6 * kWidth, 10.0F);
  base::ThreadPool pool(1);
  const tensor::Stream stream(pool, {}, tensor::precision_of(tensor::Device::Cpu));
  rows_[0].add_to(stream, {gradient.data(), {6, kWidth}}, {0, 6});
  EXPECT_EQ(gradient, (std::vector<float>{10, 10, 11, 12, 10, 10, 10, 10, 13, 14, 10, 10}));
  // Of a shard those of its words.
  rows_[0].add_to(stream, {gradient.data(), {6, kWidth}}, {2, 5});
  EXPECT_EQ(gradient, (std::vector<float>{10, 10, 11, 12, 10, 10, 10, 10, 16, 18, 10, 10}));
}

TEST_F(TiedRowsTest, MayBeNone) {
  lay_out(table_of(6), {{reading({})}, {}});
  EXPECT_EQ(rows_[0].rows_RD().size(0), 0);
  EXPECT_EQ(rows_[1].rows_RD().size(0), 0);
}

}  // namespace
}  // namespace plenum::pipeline
