#include "plenum/data/batches/step_bounds.h"

#include <gtest/gtest.h>

#include "plenum/batch/capacity.h"

#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

using testing::HasSubstr;

packing::LengthHistogram histogram_of(std::initializer_list<std::pair<std::size_t, std::uint64_t>> counts) {
  packing::LengthHistogram histogram;
  for (const auto& [length, count] : counts) {
    histogram.counts.resize(std::max(histogram.counts.size(), length + 1));
    histogram.counts[length] = count;
  }
  return histogram;
}

TEST(StepBounds, AreExactForSequencesOfOneLength) {
  const packing::LengthHistogram histogram = histogram_of({{512, 1000}});
  for (const Layout layout : {Layout::Padded, Layout::Unpadded}) {
    const StepBounds bounds = bound_steps(
        {.histogram = histogram, .layout = layout, .max_length = 512, .items_per_step = 100, .num_ranks = 3});
    EXPECT_EQ(bounds.micro_batches_per_rank, 5);  // 34 sequences of a rank, 8 in a micro-batch
    EXPECT_EQ(bounds.capacity,
              (batch::Capacity{.rows = 4096, .sequences = 8, .labels = {8 * 77}, .max_length = 512}));
  }
}

TEST(StepBounds, PlanNoMoreThanAStepHas) {
  const packing::LengthHistogram histogram = histogram_of({{100, 3}, {512, 3}});
  const StepBounds bounds = bound_steps({.histogram = histogram, .max_length = 512, .items_per_step = 2});
  EXPECT_EQ(bounds.micro_batches_per_rank, 1);
  EXPECT_EQ(bounds.capacity,
            (batch::Capacity{.rows = 1024, .sequences = 2, .labels = {2 * 77}, .max_length = 512}));
}

TEST(StepBounds, LimitMaskedTokensOfShortSequences) {
  const packing::LengthHistogram histogram = histogram_of({{5, 10'000}, {512, 10'000}});
  const StepBounds bounds =
      bound_steps({.histogram = histogram, .max_length = 512, .items_per_step = 10'000});
  EXPECT_EQ(bounds.capacity.sequences, 4096 / 5);
  EXPECT_EQ(bounds.capacity.labels[0], 8 * 77 * 9 / 8);
}

TEST(StepBounds, FollowThePlan) {
  const packing::LengthHistogram histogram = histogram_of({{10, 40}, {60, 20}});
  const packing::PackingPlan plan{
      .capacity = 64, .depth = 6, .patterns = {{{60}, 20}, {{10, 10, 10, 10, 10}, 6}, {{10, 10}, 5}}};
  StepProblem problem{.histogram = histogram,
                      .plan = &plan,
                      .layout = Layout::Packed,
                      .max_length = 64,
                      .items_per_step = 8,
                      .micro_batches = {.tokens = 200}};
  StepBounds bounds = bound_steps(problem);
  EXPECT_EQ(bounds.item_rows, 64);
  EXPECT_EQ(bounds.micro_batches_per_rank, 3);
  EXPECT_EQ(bounds.capacity,
            (batch::Capacity{.rows = 192, .sequences = 15, .labels = {30}, .max_length = 60}));

  problem.layout = Layout::Padded;  // six packs of five sequences and two of two
  bounds = bound_steps(problem);
  EXPECT_EQ(bounds.micro_batches_per_rank, 12);
  EXPECT_EQ(bounds.capacity,
            (batch::Capacity{.rows = 180, .sequences = 3, .labels = {27}, .max_length = 60}));
}

TEST(StepBounds, OfPacksOfAStepsOwnSequencesHoldNoMoreThanTheStepHas) {
  const packing::LengthHistogram histogram = histogram_of({{5, 1000}, {10, 40}, {60, 20}});
  const StepBounds bounds =
      bound_steps({.histogram = histogram, .layout = Layout::Packed, .max_length = 128, .items_per_step = 6});
  EXPECT_EQ(bounds.item_rows, 128);
  EXPECT_EQ(bounds.items_per_step, 3) << "any two sequences fit into a pack";
  EXPECT_EQ(bounds.capacity,
            (batch::Capacity{.rows = 3 * 128, .sequences = 6, .labels = {6 * 9}, .max_length = 60}));
}

TEST(StepBounds, RefuseMicroBatchesThatAreTooSmall) {
  const packing::LengthHistogram histogram = histogram_of({{5, 10}, {512, 10}});
  const auto error = test::user_error_of([&] {
    bound_steps(
        {.histogram = histogram, .max_length = 512, .items_per_step = 4, .micro_batches = {.tokens = 511}});
  });
  EXPECT_THAT(error, HasSubstr("room for the longest sequence"));
  EXPECT_THAT(error, HasSubstr("must be at least 512"));
}

TEST(StepBounds, PadToTheLongestThereIs) {
  const packing::LengthHistogram histogram = histogram_of({{5, 10}, {100, 10}});
  for (const Layout layout : {Layout::Padded, Layout::Unpadded}) {
    const StepBounds bounds = bound_steps({.histogram = histogram,
                                           .layout = layout,
                                           .max_length = 512,
                                           .items_per_step = 4,
                                           .micro_batches = {.tokens = 200}});
    EXPECT_EQ(bounds.item_rows, 100);
    EXPECT_EQ(bounds.micro_batches_per_rank, 2);
    EXPECT_EQ(bounds.capacity.rows, 200);
    EXPECT_EQ(bounds.capacity.max_length, 100);
  }
}

TEST(StepBounds, CheckThatThereAreStepsRanksAndMicroBatches) {
  const packing::LengthHistogram histogram = histogram_of({{5, 10}});
  const auto bound = [&](std::int64_t items_per_step, std::int64_t num_ranks, std::int64_t count = 1) {
    bound_steps({.histogram = histogram,
                 .max_length = 5,
                 .items_per_step = items_per_step,
                 .num_ranks = num_ranks,
                 .micro_batches = {.count = count}});
  };
  EXPECT_THROW(bound(0, 1), base::InternalError);
  EXPECT_THROW(bound(1, 0), base::InternalError);
  EXPECT_THROW(bound(1, 1, 0), base::InternalError);
}

TEST(StepBounds, OfDividedMicroBatchesAreTheLargestItemsThatOneCanGet) {
  const packing::LengthHistogram histogram = histogram_of({{10, 1000}, {100, 2}, {512, 3}});
  StepProblem problem{.histogram = histogram,
                      .max_length = 512,
                      .items_per_step = 100,
                      .num_ranks = 2,
                      .micro_batches = {.count = 8}};  // 50 items of a rank, 7 in a micro-batch
  StepBounds bounds = bound_steps(problem);
  EXPECT_EQ(bounds.micro_batches_per_rank, 8);
  EXPECT_EQ(bounds.capacity.rows, 3 * 512 + 2 * 100 + 2 * 10);
  EXPECT_EQ(bounds.capacity.sequences, 7);
  problem.layout = Layout::Padded;
  bounds = bound_steps(problem);
  EXPECT_EQ(bounds.capacity.rows, 7 * 512);
  EXPECT_EQ(bounds.capacity.sequences, 7);
}

TEST(StepBounds, OfDividedMicroBatchesAreThoseOfPacksWhereStepsArePacks) {
  const packing::LengthHistogram histogram = histogram_of({{10, 40}, {60, 20}});
  const packing::PackingPlan plan{
      .capacity = 64, .depth = 6, .patterns = {{{60}, 20}, {{10, 10, 10, 10, 10}, 6}, {{10, 10}, 5}}};
  const StepBounds bounds = bound_steps({.histogram = histogram,
                                         .plan = &plan,
                                         .max_length = 64,
                                         .items_per_step = 9,
                                         .micro_batches = {.count = 4}});
  EXPECT_EQ(bounds.capacity,
            (batch::Capacity{.rows = 192, .sequences = 15, .labels = {30}, .max_length = 60}));
}

TEST(StepBounds, RefuseDividedMicroBatchesThatMayBeLargerThanAllowed) {
  const packing::LengthHistogram histogram = histogram_of({{512, 100}});
  const auto error = test::user_error_of([&] {
    bound_steps({.histogram = histogram,
                 .max_length = 512,
                 .items_per_step = 16,
                 .micro_batches = {.tokens = 1000, .count = 8}});
  });
  EXPECT_EQ(
      error,
      "with --micro-batches 8 one may have up to 1024 tokens, more than --micro-batch-tokens 1000; give "
      "more --micro-batches");
}

}  // namespace
}  // namespace plenum::data
