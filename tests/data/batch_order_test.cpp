#include "plenum/data/batches/batch_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/packing/lpfhp.h"

namespace plenum::data {
namespace {

using packing::LengthHistogram;
using packing::PackingPlan;
using packing::SequenceIds;
using Unit = GlobalBatchSize::Unit;

/// A histogram of up to 60 lengths, a function of `index`.
LengthHistogram random_histogram(std::uint64_t index) {
  const base::RandomFunction random(5, base::Purpose::Holdout);
  LengthHistogram histogram{{0}};
  const std::uint64_t longest = 1 + base::to_range(random(index, 1000), 60);
  for (std::uint32_t length = 1; length <= longest; ++length) {
    histogram.counts.push_back(base::to_range(random(index, length), 12));
  }
  ++histogram.counts.back();
  return histogram;
}

PackingPlan plan_for(const LengthHistogram& histogram, std::int64_t depth) {
  return packing::pack_lpfhp({.histogram = histogram, .capacity = histogram.longest() + 3, .depth = depth});
}

std::uint64_t tokens_of(const GlobalBatch& batch, const LengthHistogram& histogram) {
  const SequenceIds ids(histogram);
  std::uint64_t tokens = 0;
  for (const std::uint64_t id : batch.sequence_ids) tokens += static_cast<std::uint64_t>(ids.length_of(id));
  return tokens;
}

std::vector<std::uint64_t> all_ids(const BatchOrder& order, std::uint64_t epoch) {
  std::vector<std::uint64_t> ids;
  const EpochOrder of_epoch = order.epoch(epoch);
  for (std::uint64_t step = 0; step < order.steps_per_epoch(); ++step) {
    const GlobalBatch batch = of_epoch.batch(step);
    ids.insert(ids.end(), batch.sequence_ids.begin(), batch.sequence_ids.end());
  }
  return ids;
}

void expect_each_once(std::vector<std::uint64_t> ids, std::uint64_t num_sequences) {
  std::sort(ids.begin(), ids.end());
  std::vector<std::uint64_t> expected(num_sequences);
  std::iota(expected.begin(), expected.end(), std::uint64_t{0});
  ASSERT_EQ(ids, expected);
}

TEST(BatchOrder, VisitsEverySequenceOnceAnEpoch) {
  for (std::uint64_t index = 0; index < 3000; ++index) {
    const LengthHistogram histogram = random_histogram(index);
    const Unit unit = index % 2 == 0 ? Unit::Sequences : Unit::Tokens;
    const BatchOrder order(histogram, {unit, 1 + index % 97}, index);
    expect_each_once(all_ids(order, index % 3), histogram.num_sequences());
  }
}

TEST(BatchOrder, VisitsEverySequenceOnceAnEpochInPacksOfThePlan) {
  for (std::uint64_t index = 0; index < 2000; ++index) {
    const LengthHistogram histogram = random_histogram(index);
    const PackingPlan plan = plan_for(histogram, 1 + static_cast<std::int64_t>(index % 5));
    const Unit unit = index % 2 == 0 ? Unit::Sequences : Unit::Tokens;
    const BatchOrder order(histogram, plan, {unit, 1 + index % 97}, index);
    ASSERT_EQ(order.num_items(), plan.num_packs());
    const SequenceIds ids(histogram);
    std::uint64_t num_packs = 0;
    for (std::uint64_t step = 0; step < order.steps_per_epoch(); ++step) {
      const GlobalBatch batch = order.batch(index % 3, step);
      ASSERT_EQ(batch.pack_starts.size(), order.steps().range(step).size() + 1);
      ASSERT_EQ(batch.pack_starts.back(), batch.sequence_ids.size());
      for (std::size_t pack = 0; pack + 1 < batch.pack_starts.size(); ++pack) {
        std::int64_t tokens = 0;
        for (std::size_t i = batch.pack_starts[pack]; i < batch.pack_starts[pack + 1]; ++i) {
          tokens += ids.length_of(batch.sequence_ids[i]);
        }
        ASSERT_GE(tokens, 1);
        ASSERT_LE(tokens, plan.capacity);
        ++num_packs;
      }
    }
    ASSERT_EQ(num_packs, plan.num_packs());
    expect_each_once(all_ids(order, index % 3), histogram.num_sequences());
  }
}

TEST(BatchOrder, TakesTheSequencesAskedForInEveryStepButTheLastTwo) {
  const BatchOrder order(LengthHistogram{{0, 1000}}, {Unit::Sequences, 64}, 1);
  EXPECT_EQ(order.items_per_step(), 64u);
  EXPECT_EQ(order.steps_per_epoch(), 16u);
  for (std::uint64_t step = 0; step < 14; ++step) EXPECT_EQ(order.batch(0, step).sequence_ids.size(), 64u);
  EXPECT_EQ(order.batch(0, 14).sequence_ids.size(), 52u);
  EXPECT_EQ(order.batch(0, 15).sequence_ids.size(), 52u);
}

TEST(BatchOrder, TakesTheTokensAskedForOnAverage) {
  const LengthHistogram histogram{{0, 4000, 0, 0, 0, 0, 0, 0, 0, 0, 2000}};  // 24,000 tokens, mean 4
  for (const bool packed : {false, true}) {
    const GlobalBatchSize size{Unit::Tokens, 800};
    const BatchOrder order =
        packed ? BatchOrder(histogram, plan_for(histogram, 3), size, 1) : BatchOrder(histogram, size, 1);
    EXPECT_NEAR(order.expected_tokens_per_step(), 800, 6);
    EXPECT_NEAR(static_cast<double>(order.steps_per_epoch()), 30, 1);
    std::uint64_t tokens = 0;
    for (std::uint64_t step = 0; step < order.steps_per_epoch(); ++step) {
      const std::uint64_t of_step = tokens_of(order.batch(0, step), histogram);
      tokens += of_step;
      // Six standard deviations of 200 lengths that are 1 or 10.
      EXPECT_NEAR(static_cast<double>(of_step), 800, 6 * std::sqrt(200.0) * 4.3);
    }
    EXPECT_EQ(tokens, 24000u);
  }
}

TEST(BatchOrder, CountsSequencesOfPacksByTheirMean) {
  // 300 packs of three sequences each.
  const LengthHistogram histogram{{0, 900}};
  const PackingPlan plan = packing::pack_lpfhp({.histogram = histogram, .capacity = 3, .depth = 3});
  const BatchOrder order(histogram, plan, {Unit::Sequences, 90}, 1);
  EXPECT_EQ(order.items_per_step(), 30u);
  EXPECT_EQ(order.steps_per_epoch(), 10u);
}

TEST(BatchOrder, MakesOneStepOfABatchLargerThanTheEpoch) {
  for (const Unit unit : {Unit::Sequences, Unit::Tokens}) {
    const BatchOrder order(LengthHistogram{{0, 5, 5}}, {unit, ~std::uint64_t{0}}, 1);
    EXPECT_EQ(order.steps_per_epoch(), 1u);
    EXPECT_EQ(order.batch(7, 0).sequence_ids.size(), 10u);
  }
}

TEST(BatchOrder, TakesOneItemWhereABatchIsSmallerThanAnItem) {
  const BatchOrder order(LengthHistogram{{0, 0, 0, 0, 0, 0, 0, 0, 3}}, {Unit::Tokens, 1}, 1);
  EXPECT_EQ(order.items_per_step(), 1u);
  EXPECT_EQ(order.steps_per_epoch(), 3u);
}

TEST(BatchOrder, DiffersBetweenEpochsAndSeeds) {
  const LengthHistogram histogram{{0, 500, 500}};
  const BatchOrder order(histogram, {Unit::Sequences, 100}, 1);
  const BatchOrder other(histogram, {Unit::Sequences, 100}, 2);
  EXPECT_EQ(all_ids(order, 3), all_ids(order, 3));
  EXPECT_NE(all_ids(order, 3), all_ids(order, 4));
  EXPECT_NE(all_ids(order, 3), all_ids(other, 3));
}

// The order of sequences is the same whatever the size of the batch; only the cuts move.
TEST(BatchOrder, KeepsTheOrderWhenTheBatchSizeChanges) {
  const LengthHistogram histogram{{0, 50, 51}};
  EXPECT_EQ(all_ids(BatchOrder(histogram, {Unit::Sequences, 7}, 1), 2),
            all_ids(BatchOrder(histogram, {Unit::Tokens, 30}, 1), 2));
}

TEST(BatchOrder, IsFrozen) {
  const LengthHistogram histogram{{0, 6, 4, 4}};
  const BatchOrder order(histogram, {Unit::Sequences, 5}, 42);
  EXPECT_EQ(order.batch(1, 0).sequence_ids, (std::vector<std::uint64_t>{4, 0, 6, 3, 5}));
  const PackingPlan plan{.capacity = 6, .depth = 3, .patterns = {{{3, 2, 1}, 4}, {{1, 1}, 1}}};
  const BatchOrder packed(histogram, plan, {Unit::Tokens, 12}, 42);
  EXPECT_EQ(packed.batch(1, 0).sequence_ids, (std::vector<std::uint64_t>{11, 8, 4, 12, 9, 0}));
}

TEST(BatchOrder, ComputesStepsOfAHugeEpochAtOnce) {
  const LengthHistogram histogram{{0, 0, std::uint64_t{1} << 61}};
  const BatchOrder order(histogram, {Unit::Sequences, 1024}, 1);
  EXPECT_EQ(order.steps_per_epoch(), std::uint64_t{1} << 51);
  EXPECT_EQ(order.batch(9, (std::uint64_t{1} << 51) - 1).sequence_ids.size(), 1024u);
}

TEST(BatchOrder, RefusesWhatGivesNoSteps) {
  EXPECT_THROW(BatchOrder(LengthHistogram{{0}}, {Unit::Sequences, 1}, 0), base::UserError);
  EXPECT_THROW(BatchOrder(LengthHistogram{{0, 1}}, {Unit::Sequences, 0}, 0), base::UserError);
  const BatchOrder order(LengthHistogram{{0, 4}}, {Unit::Sequences, 2}, 0);
  EXPECT_THROW(order.batch(0, 2), base::InternalError);
}

TEST(BatchOrder, RefusesAPlanOfOtherSequences) {
  const PackingPlan plan{.capacity = 6, .depth = 3, .patterns = {{{3, 2, 1}, 4}}};
  EXPECT_THROW(BatchOrder(LengthHistogram{{0, 4, 4, 5}}, plan, {Unit::Sequences, 1}, 0), base::UserError);
}

}  // namespace
}  // namespace plenum::data
