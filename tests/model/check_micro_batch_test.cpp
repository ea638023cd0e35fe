#include "plenum/model/check_micro_batch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>

#include "plenum/base/check.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/describe/bert.h"

#include "tests/support/task_batches.h"

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

describe::ModelDescription model_of(const describe::Task& task) {
  return describe::describe_bert({.vocabulary = 31,
                                  .width = 20,
                                  .num_layers = 1,
                                  .num_heads = 2,
                                  .mlp_width = 28,
                                  .max_positions = 12,
                                  .task = task});
}

batch::MicroBatch of_task(const describe::Task& task) {
  return plenum::test::lay_out_task(task, random_sequences(6, 12, 31, 5), kRowLength);
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

TEST(CheckMicroBatch, TakesTheLabelsOfEveryTask) {
  for (const describe::Task& task : plenum::test::every_task())
    EXPECT_NO_THROW(check_micro_batch(of_task(task), model_of(task))) << describe::name_of(task.kind);
}

TEST(CheckMicroBatch, RefusesLabelsThatAreNotOfTheTask) {
  using describe::TaskKind;
  using Labels = std::vector<std::int32_t>;
  const auto expect_labels_refused = [](TaskKind kind, const char* reason, const auto& damage) {
    const auto tasks = plenum::test::every_task();
    const describe::Task& task = *std::ranges::find(tasks, kind, &describe::Task::kind);
    batch::MicroBatch damaged = of_task(task);
    damage(damaged.objectives[0].labels);
    EXPECT_THAT([&] { check_micro_batch(damaged, model_of(task)); },
                testing::ThrowsMessage<base::InternalError>(testing::HasSubstr(reason)));
  };
  constexpr std::int32_t kFirst = batch::GroupLabel::kFirst;
  expect_labels_refused(TaskKind::Classification, "labels of sequences must be below 3: 3",
                        [](Labels& labels) { labels[1] = 3; });
  expect_labels_refused(TaskKind::TokenClassification, "labels of words must be below 4: -1",
                        [](Labels& labels) { labels[1] = -1; });
  expect_labels_refused(TaskKind::Regression, "must be finite numbers: nan",
                        [](Labels& labels) { labels[1] = std::bit_cast<std::int32_t>(NAN); });
  expect_labels_refused(TaskKind::Regression, "must be finite numbers: inf",
                        [](Labels& labels) { labels[1] = std::bit_cast<std::int32_t>(INFINITY); });
  const auto answers = TaskKind::QuestionAnswering;
  expect_labels_refused(answers, "before the first of its group",
                        [](Labels& labels) { labels[0] &= ~kFirst; });
  expect_labels_refused(answers, "no answer in some column: 0x0 of 0x3",
                        [](Labels& labels) { labels[3] = kFirst; });
  expect_labels_refused(answers, "not of 2 columns: 0x4", [](Labels& labels) { labels[1] = 4; });
  expect_labels_refused(answers, "two answers in a column", [](Labels& labels) {
    for (std::int32_t& label : labels) label |= batch::GroupLabel::answer(1);
  });
  expect_labels_refused(answers, "must all be of groups", [](Labels& labels) {
    const auto behind_last = std::find_if(labels.rbegin(), labels.rend(), batch::GroupLabel::is_first).base();
    std::fill(behind_last - 1, labels.end(), -1);
  });
  expect_labels_refused(answers, "6 sequences must be 6 groups of 1: 1 groups", [](Labels& labels) {
    std::ranges::fill(labels, 0);
    labels[0] = kFirst | 3;
  });
  expect_labels_refused(TaskKind::MultipleChoice, "6 sequences must be 2 groups of 3: 1 groups",
                        [](Labels& labels) { labels = {kFirst | 1, 0, 0, 0, 0, 0}; });
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
