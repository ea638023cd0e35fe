#include "plenum/model/check_micro_batch.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "plenum/base/check.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/describe/bert.h"

#include "tests/support/test_sequences.h"

namespace plenum::model {
namespace {

using plenum::test::lay_out;
using plenum::test::random_sequences;

const describe::ModelDescription kModel = describe::describe_bert({.vocabulary = 31,
                                                                   .width = 20,
                                                                   .num_layers = 1,
                                                                   .num_heads = 2,
                                                                   .mlp_width = 28,
                                                                   .max_positions = 12,
                                                                   .has_next_sentence = true});

constexpr std::int64_t kRowLength = 14;  // the last two rows are padding

batch::MicroBatch sound() {
  return lay_out(random_sequences(3, 12, 31, 5), kRowLength);
}

/// Expects a micro-batch to be refused in which `damage` has changed something.
template <typename Damage>
void expect_refusal(const char* reason, Damage damage) {
  batch::MicroBatch damaged = sound();
  damage(damaged);
  EXPECT_THAT([&] { check_micro_batch(damaged, kModel); },
              testing::ThrowsMessage<base::InternalError>(testing::HasSubstr(reason)));
}

TEST(CheckMicroBatch, TakesWhatIsSound) {
  EXPECT_NO_THROW(check_micro_batch(sound(), kModel));
  EXPECT_NO_THROW(check_micro_batch(lay_out(random_sequences(3, 12, 31, 5)), kModel));
  EXPECT_NO_THROW(check_micro_batch({}, kModel));
}

TEST(CheckMicroBatch, RefusesWhatLiesOutsideATable) {
  expect_refusal("tokens must be below 31: 31", [](batch::MicroBatch& batch) { batch.ids[3] = 31; });
  expect_refusal("tokens must be below 31: -1", [](batch::MicroBatch& batch) { batch.ids[3] = -1; });
  expect_refusal("segments", [](batch::MicroBatch& batch) { batch.segments[3] = 2; });
  expect_refusal("positions", [](batch::MicroBatch& batch) { batch.positions[3] = 12; });
  expect_refusal("labels of masked", [](batch::MicroBatch& batch) { batch.objectives[0].labels[0] = -1; });
  expect_refusal("labels of sequences", [](batch::MicroBatch& batch) { batch.objectives[1].labels[0] = 2; });
  expect_refusal("by token", [](batch::MicroBatch& batch) { batch.by_word.entries.back() = 31; });
  expect_refusal("by position", [](batch::MicroBatch& batch) { batch.by_position.entries.back() = 12; });
  expect_refusal("by segment", [](batch::MicroBatch& batch) { batch.by_segment.entries.back() = 2; });
}

TEST(CheckMicroBatch, RefusesRowsThatAreNotThere) {
  constexpr std::int32_t kNumRows = 3 * kRowLength;
  expect_refusal("rows of masked",
                 [](batch::MicroBatch& batch) { batch.objectives[0].rows.back() = kNumRows; });
  expect_refusal("by token", [](batch::MicroBatch& batch) { batch.by_word.rows.back() = kNumRows; });
  expect_refusal("by position", [](batch::MicroBatch& batch) { batch.by_position.rows.front() = -1; });
  expect_refusal("by segment", [](batch::MicroBatch& batch) { ++batch.by_segment.starts.back(); });
}

TEST(CheckMicroBatch, RefusesListsThatDoNotBelongTogether) {
  expect_refusal("42 tokens: 41", [](batch::MicroBatch& batch) { batch.ids.pop_back(); });
  expect_refusal("42 segments: 41", [](batch::MicroBatch& batch) { batch.segments.pop_back(); });
  expect_refusal("42 positions: 43", [](batch::MicroBatch& batch) { batch.positions.push_back(0); });
  expect_refusal("42 samples of rows: 41", [](batch::MicroBatch& batch) { batch.row_samples.pop_back(); });
  expect_refusal("3 samples of sequences: 2", [](batch::MicroBatch& batch) { batch.samples.pop_back(); });
  expect_refusal("3 labels of sequences: 2",
                 [](batch::MicroBatch& batch) { batch.objectives[1].labels.pop_back(); });
  expect_refusal("labels of masked tokens",
                 [](batch::MicroBatch& batch) { batch.objectives[0].labels.pop_back(); });
}

TEST(CheckMicroBatch, RefusesMaskedRowsThatDoNotIncrease) {
  expect_refusal("must increase",
                 [](batch::MicroBatch& batch) { batch.objectives[0].rows[1] = batch.objectives[0].rows[0]; });
  expect_refusal("must increase",
                 [](batch::MicroBatch& batch) { std::ranges::reverse(batch.objectives[0].rows); });
}

TEST(CheckMicroBatch, RefusesSequencesThatDoNotFit) {
  expect_refusal("behind the last row: 43 of 42",
                 [](batch::MicroBatch& batch) { batch.lengths.back() = kRowLength + 1; });
  expect_refusal("in order", [](batch::MicroBatch& batch) { batch.lengths.front() = kRowLength + 1; });
  expect_refusal("in order", [](batch::MicroBatch& batch) { batch.starts.front() = -1; });
  expect_refusal("not empty", [](batch::MicroBatch& batch) { batch.lengths.back() = 0; });
  expect_refusal("behind the last row", [](batch::MicroBatch& batch) { batch.starts.back() = 1 << 20; });
  expect_refusal("a start and a length", [](batch::MicroBatch& batch) { batch.lengths.pop_back(); });
}

}  // namespace
}  // namespace plenum::model
