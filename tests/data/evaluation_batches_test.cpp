#include "plenum/data/batches/evaluation_batches.h"

#include <gtest/gtest.h>

#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/batch/work.h"

#include "tests/data/batch_fixture.h"
#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

using testing::HasSubstr;

std::map<std::int64_t, SeenSequence> collect(const EvaluationBatches& batches) {
  std::map<std::int64_t, SeenSequence> seen;
  for (std::size_t i = 0; i < batches.size(); ++i) collect(batches.make(i), seen);
  return seen;
}

TEST(EvaluationBatches, HoldEverySequenceOnceWithinTheCapacity) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  const EvaluationBatches batches(sequences, {.micro_batch_tokens = 100});
  std::map<std::int64_t, SeenSequence> seen;
  batch::Work total;
  batch::Capacity most{.max_length = 64};
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const batch::MicroBatch batch = batches.make(i);
    EXPECT_LE(batch.num_rows, 100);
    EXPECT_TRUE(batch.by_word.starts.empty());
    most.rows = std::max(most.rows, batch.num_rows);
    most.sequences = std::max(most.sequences, static_cast<std::int64_t>(batch.starts.size()));
    most.labels[0] = std::max(most.labels[0], static_cast<std::int64_t>(batch.objective(0).rows.size()));
    total += batch.work();
    collect(batch, seen);
  }
  EXPECT_EQ(most, batches.capacity());
  EXPECT_EQ(seen.size(), sequences.histogram().num_sequences());
  EXPECT_EQ(total.tokens, static_cast<std::int64_t>(sequences.histogram().num_tokens()));
  EXPECT_EQ(total.tokens, batches.work().tokens);
  EXPECT_EQ(total.labels, batches.work().labels);
  EXPECT_EQ(total.sequences, batches.work().sequences);
}

TEST(EvaluationBatches, MaskAlikeWhateverTheMicroBatches) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  const auto small = collect(EvaluationBatches(sequences, {.micro_batch_tokens = 64}));
  EXPECT_EQ(small, collect(EvaluationBatches(sequences, {.micro_batch_tokens = 1000})));
  EXPECT_NE(small, collect(EvaluationBatches(sequences, {.micro_batch_tokens = 64, .seed = 1})));
}

TEST(EvaluationBatches, DrawAsManySequencesAsAskedFor) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  const auto drawn = collect(EvaluationBatches(sequences, {.max_sequences = 20}));
  EXPECT_EQ(drawn.size(), 20U);
  EXPECT_EQ(drawn, collect(EvaluationBatches(sequences, {.max_sequences = 20})));
  const auto others = collect(EvaluationBatches(sequences, {.max_sequences = 20, .seed = 9}));
  EXPECT_NE(drawn.begin()->first, others.begin()->first);
}

TEST(EvaluationBatches, RefuseToEvaluateOnNothing) {
  const test::SyntheticSequences sequences = synthetic({.counts = {0}});
  EXPECT_THAT(test::user_error_of([&] { EvaluationBatches(sequences, {}); }), HasSubstr("--holdout"));
}

TEST(EvaluationBatches, CheckThatTheyAreAskedForSequences) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  for (const std::int64_t none : {0, -1})
    EXPECT_THROW(EvaluationBatches(sequences, {.max_sequences = none}), base::InternalError);
}

}  // namespace
}  // namespace plenum::data
