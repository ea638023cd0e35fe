#include "plenum/kernels/cpu/attention_tasks.h"

#include <set>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace plenum::kernels::cpu {
namespace {

constexpr std::int64_t kHeads = 3;

/// Sequences one behind the other. Only their lengths matter to tasks.
struct Sequences {
  std::vector<std::int32_t> starts;
  std::vector<std::int32_t> lengths;
  std::int32_t num_rows = 0;

  void add(std::int32_t length) {
    starts.push_back(num_rows);
    lengths.push_back(length);
    num_rows += length;
  }
  batch::SequenceOffsets offsets() const { return {starts, lengths, num_rows}; }
};

std::int64_t parts_of(std::int64_t length) {
  return 1 + length / 100;
}

std::int64_t num_calls = 0;
std::int64_t counted_parts_of(std::int64_t length) {
  ++num_calls;
  return parts_of(length);
}

TEST(AttentionTasks, NameEveryPartOnceAndLongSequencesFirst) {
  for (const std::int32_t count : {0, 1, 2, 63, 64, 65, 1000}) {
    Sequences sequences;
    for (std::int32_t s = 0; s < count; ++s) sequences.add(1 + s * s * 37 % 300);
    const batch::SequenceOffsets offsets = sequences.offsets();
    const AttentionTasks tasks(offsets, kHeads, parts_of);
    std::set<std::tuple<std::size_t, std::int64_t, std::int64_t>> seen;
    std::int32_t last_class = 1000;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const AttentionTasks::Task task = tasks[i];
      ASSERT_LT(task.sequence, sequences.lengths.size());
      const std::int32_t length = sequences.lengths[task.sequence];
      EXPECT_LT(task.head, kHeads);
      EXPECT_LT(task.part, parts_of(length));
      EXPECT_TRUE(seen.emplace(task.sequence, task.head, task.part).second) << i << " of " << count;
      EXPECT_LE(length / 64, last_class) << i << " of " << count;
      last_class = length / 64;
    }
    std::size_t expected = 0;
    for (const std::int32_t length : sequences.lengths) {
      expected += static_cast<std::size_t>(kHeads * parts_of(length));
    }
    EXPECT_EQ(seen.size(), expected);
  }
}

TEST(AttentionTasks, AreFoundWithoutPassingAllSequences) {
  Sequences sequences;
  for (std::int32_t s = 0; s < 4096; ++s) sequences.add(8);
  const batch::SequenceOffsets offsets = sequences.offsets();
  const AttentionTasks tasks(offsets, kHeads, counted_parts_of);
  for (const std::size_t index : {std::size_t{0}, tasks.size() / 2, tasks.size() - 1}) {
    num_calls = 0;
    EXPECT_EQ(tasks[index].sequence, index / kHeads);
    EXPECT_LE(num_calls, 64) << index;
  }
}

}  // namespace
}  // namespace plenum::kernels::cpu
