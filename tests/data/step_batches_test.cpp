#include "plenum/data/batches/step_batches.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/batch/micro_batch_bytes.h"
#include "plenum/batch/step_batch.h"
#include "plenum/batch/work.h"
#include "plenum/data/batches/packing_plan_file.h"
#include "plenum/packing/lpfhp.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/generate/data_parallel.h"

#include "tests/data/batch_fixture.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::data {
namespace {

using testing::HasSubstr;

TrainingDataOptions options_for(Layout layout, OrderChoice order = OrderChoice::Auto) {
  TrainingDataOptions options;
  options.layout = layout;
  options.order_choice = order;
  options.global_batch = "17";
  options.micro_batch_tokens = 150;
  return options;
}

void expect_within(const batch::MicroBatch& batch, const batch::Capacity& capacity) {
  EXPECT_LE(batch.num_rows, capacity.rows);
  EXPECT_LE(static_cast<std::int64_t>(batch.starts.size()), capacity.sequences);
  EXPECT_LE(static_cast<std::int64_t>(batch.objective(0).rows.size()), capacity.labels[0]);
  for (const std::int32_t length : batch.lengths) EXPECT_LE(length, capacity.max_length);
}

template <typename Element>
std::size_t bytes_of(const std::vector<Element>& elements) {
  return elements.capacity() * sizeof(Element);
}

std::size_t bytes_of(const batch::GroupedRows& groups) {
  return bytes_of(groups.entries) + bytes_of(groups.starts) + bytes_of(groups.rows);
}

/// What a micro-batch has taken.
std::size_t bytes_of(const batch::MicroBatch& batch) {
  std::size_t bytes = sizeof(batch) + bytes_of(batch.ids) + bytes_of(batch.segments) +
                      bytes_of(batch.positions) + bytes_of(batch.row_samples) + bytes_of(batch.starts) +
                      bytes_of(batch.lengths) + bytes_of(batch.samples) + bytes_of(batch.objectives) +
                      bytes_of(batch.by_word) + bytes_of(batch.by_position) + bytes_of(batch.by_segment);
  for (const batch::ObjectiveRows& objective : batch.objectives)
    bytes += bytes_of(objective.rows) + bytes_of(objective.labels);
  return bytes;
}

/// Everything that a micro-batch promises by itself.
void expect_consistent(const batch::MicroBatch& batch) {
  const auto num_rows = static_cast<std::size_t>(batch.num_rows);
  ASSERT_EQ(batch.ids.size(), num_rows);
  ASSERT_EQ(batch.segments.size(), num_rows);
  ASSERT_EQ(batch.positions.size(), num_rows);
  ASSERT_EQ(batch.row_samples.size(), num_rows);
  ASSERT_EQ(batch.objective(0).rows.size(), batch.objective(0).labels.size());
  EXPECT_TRUE(std::is_sorted(batch.objective(0).rows.begin(), batch.objective(0).rows.end()));
  std::vector<bool> is_padding(num_rows, true);
  std::int32_t end = 0;
  for (std::size_t s = 0; s < batch.starts.size(); ++s) {
    ASSERT_GE(batch.starts[s], end);
    end = batch.starts[s] + batch.lengths[s];
    ASSERT_LE(end, batch.num_rows);
    for (std::int32_t i = 0; i < batch.lengths[s]; ++i) {
      const auto row = static_cast<std::size_t>(batch.starts[s] + i);
      is_padding[row] = false;
      EXPECT_EQ(batch.positions[row], i);
      EXPECT_EQ(batch.row_samples[row], batch.samples[s]);
    }
  }
  for (std::size_t row = 0; row < num_rows; ++row) {
    if (!is_padding[row]) continue;
    EXPECT_EQ(batch.ids[row], 0);
    EXPECT_EQ(batch.segments[row], 0);
    EXPECT_EQ(batch.positions[row], 0);
  }
}

TEST(StepBatchSource, PlacesEverySequenceOfAnEpochOnce) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  for (const Layout layout : {Layout::Padded, Layout::Packed, Layout::Unpadded}) {
    for (const std::size_t num_ranks : {1U, 2U, 3U}) {
      const StepBatchSource source(sequences, options_for(layout), small_model(), num_ranks, 7);
      std::set<std::int64_t> seen;
      for (std::uint64_t step = 0; step < source.steps_per_epoch(); ++step) {
        for (const auto& [sample, sequence] : collect(source.make(step))) {
          EXPECT_TRUE(seen.insert(sample).second);
          EXPECT_EQ(static_cast<std::int64_t>(sequence.ids.size()),
                    sequences.length(static_cast<std::uint64_t>(sample)));
        }
      }
      EXPECT_EQ(seen.size(), sequences.histogram().num_sequences());
    }
  }
}

TEST(StepBatchSource, GivesTheSameSequencesAndMasksInEveryLayoutOnAnyRanks) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(2, 64), /*has_next_sentence=*/true);
  const StepBatchSource reference(sequences, options_for(Layout::Unpadded, OrderChoice::Packs), small_model(),
                                  1, 7);
  for (const Layout layout : {Layout::Padded, Layout::Packed, Layout::Unpadded}) {
    for (const std::size_t num_ranks : {1U, 2U, 5U}) {
      const StepBatchSource source(sequences, options_for(layout, OrderChoice::Packs), small_model(),
                                   num_ranks, 7);
      ASSERT_EQ(source.steps_per_epoch(), reference.steps_per_epoch());
      for (const std::uint64_t step : {std::uint64_t{0}, source.steps_per_epoch() + 1}) {
        EXPECT_EQ(collect(source.make(step)), collect(reference.make(step)));
      }
    }
  }
}

TEST(StepBatchSource, MasksASequenceAlikeWhateverTheOrder) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(2, 64));
  const auto epoch_of = [&](OrderChoice order) {
    const StepBatchSource source(sequences, options_for(Layout::Unpadded, order), small_model(), 2, 7);
    std::map<std::int64_t, SeenSequence> seen;
    for (std::uint64_t step = 0; step < source.steps_per_epoch(); ++step)
      seen.merge(collect(source.make(step)));
    return seen;
  };
  EXPECT_EQ(epoch_of(OrderChoice::Sequences), epoch_of(OrderChoice::Packs));
}

TEST(StepBatchSource, MasksAnewEveryEpoch) {
  packing::LengthHistogram histogram;
  histogram.counts = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10};
  const test::SyntheticSequences sequences = synthetic(histogram);
  const StepBatchSource source(sequences, options_for(Layout::Unpadded), small_model(), 1, 7);
  ASSERT_EQ(source.steps_per_epoch(), 1U);
  const auto first = collect(source.make(0));
  const auto second = collect(source.make(1));
  int num_equal = 0;
  for (const auto& [sample, sequence] : first) {
    num_equal += sequence.masked_positions == second.at(sample).masked_positions ? 1 : 0;
  }
  EXPECT_LE(num_equal, 2);
  EXPECT_EQ(source.make(1).front().epoch, 1U);
}

TEST(StepBatchSource, KeepsToItsBoundsWhateverTheLengths) {
  for (std::uint64_t index = 0; index < 60; ++index) {
    const std::int64_t max_length = 5 + static_cast<std::int64_t>(index * 7 % 60);
    const test::SyntheticSequences sequences = synthetic(random_lengths(index, max_length));
    TrainingDataOptions options =
        options_for(static_cast<Layout>(index % 3), index % 2 == 0 ? OrderChoice::Packs : OrderChoice::Auto);
    options.global_batch = index % 4 == 0 ? "200tok" : "11";
    options.micro_batch_tokens = max_length + static_cast<std::int64_t>(index * 13 % 200);
    options.mask_rate = index % 5 == 0 ? 0.9 : 0.15;
    if (index % 7 < 3) {
      options.micro_batch_tokens.reset();
      options.micro_batches = 1 + static_cast<std::int64_t>(index % 9);
    }
    const std::size_t num_ranks = 1 + index % 4;
    const StepBatchSource source(sequences, options, small_model(), num_ranks, index);
    for (std::uint64_t step = 0; step < source.steps_per_epoch(); ++step) {
      for (const batch::StepBatch& batch : source.make(step)) {
        ASSERT_EQ(batch.micro_batches.size(), source.micro_batches_per_rank());
        for (const batch::MicroBatch& micro_batch : batch.micro_batches) {
          expect_within(micro_batch, source.capacity());
          EXPECT_LE(bytes_of(micro_batch), batch::micro_batch_bytes(source.capacity()));
          expect_consistent(micro_batch);
        }
      }
    }
  }
}

TEST(StepBatchSource, KnowsTheBoundsOfOtherMicroBatches) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  for (const Layout layout : {Layout::Padded, Layout::Packed, Layout::Unpadded}) {
    TrainingDataOptions options = options_for(layout);
    const StepBatchSource source(sequences, options, small_model(), 2, 7);
    for (const std::optional<std::int64_t> tokens : {std::optional<std::int64_t>(70), {}}) {
      options.micro_batch_tokens = tokens;
      const StepBatchSource other(sequences, options, small_model(), 2, 7);
      const StepBounds bounds = source.bounds_with({.tokens = tokens});
      EXPECT_EQ(bounds.item_rows, other.least_micro_batch_tokens());
      EXPECT_EQ(bounds.micro_batches_per_rank, other.micro_batches_per_rank());
      EXPECT_EQ(bounds.capacity.rows, other.capacity().rows);
      EXPECT_EQ(bounds.capacity.sequences, other.capacity().sequences);
      EXPECT_EQ(bounds.capacity.labels, other.capacity().labels);
      EXPECT_NE(bounds.capacity.rows, source.capacity().rows);
    }
  }
}

TEST(StepBatchSource, FillsOneMicroBatchWithAStepOfAsManyTokens) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(5, 64));
  TrainingDataOptions options = options_for(Layout::Unpadded);
  options.global_batch = "256tok";
  options.micro_batch_tokens = 256;
  const StepBatchSource source(sequences, options, small_model(), 1, 7);
  ASSERT_EQ(source.num_micro_batches(), 1U);
  for (std::uint64_t step = 0; step + 2 < source.steps_per_epoch(); ++step) {
    const std::int64_t tokens = source.make(step).front().micro_batches.front().work().tokens;
    EXPECT_LE(tokens, 256);
    EXPECT_GE(tokens, 256 - 64);
  }
}

TEST(StepBatchSource, TrainsOnTheSameWhateverTheNumberOfMicroBatches) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(4, 64), /*has_next_sentence=*/true);
  for (const Layout layout : {Layout::Padded, Layout::Packed, Layout::Unpadded}) {
    TrainingDataOptions options = options_for(layout, OrderChoice::Packs);
    const StepBatchSource filled(sequences, options, small_model(), 1, 7);
    options.micro_batch_tokens.reset();
    for (const std::int64_t count : {1, 3, 8, 40}) {
      options.micro_batches = count;
      const StepBatchSource divided(sequences, options, small_model(), 2, 7);
      ASSERT_EQ(divided.steps_per_epoch(), filled.steps_per_epoch());
      EXPECT_EQ(divided.micro_batches_per_rank(), static_cast<std::size_t>(count));
      for (std::uint64_t step = 0; step < divided.steps_per_epoch(); ++step)
        EXPECT_EQ(collect(divided.make(step)), collect(filled.make(step)));
    }
  }
}

TEST(StepBatchSource, LeavesTheFirstMicroBatchesEmptyWhereThereIsTooLittleForAll) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(4, 64));
  TrainingDataOptions options = options_for(Layout::Unpadded);
  options.micro_batch_tokens.reset();
  options.global_batch = "3";
  options.micro_batches = 5;
  const batch::StepBatch batch = StepBatchSource(sequences, options, small_model(), 1, 7).make(0).front();
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(batch.micro_batches[i].starts.size(), i < 2 ? 0U : 1U) << i;
}

/// How much more than the mean the busiest micro-batch of a pipeline has, by operations, at worst in 30
/// full steps, with so many sequences or tokens in a micro-batch.
double worst_excess(const std::string& of_micro_batch, std::int64_t count) {
  std::ifstream file(PLENUM_SOURCE_DIR "/tests/golden/wikipedia_512_histogram.txt");
  packing::LengthHistogram histogram{.counts = {0}};
  for (std::uint64_t number = 0; file >> number;) histogram.counts.push_back(number / 1000);
  for (std::size_t length = 0; length < 3; ++length) histogram.counts[length] = 0;
  const test::SyntheticSequences sequences(histogram, {}, 3);
  TrainingDataOptions options;
  options.micro_batches = count;
  const std::size_t unit = of_micro_batch.find_first_not_of("0123456789");
  const std::int64_t amount = std::stoll(of_micro_batch) * count;
  options.global_batch =
      std::to_string(amount) + (unit == std::string::npos ? "" : of_micro_batch.substr(unit));
  const StepBatchSource source(sequences, options, describe::preset("bert-base"), 1, 7);
  double worst = 0;
  const std::uint64_t num_full = source.steps_per_epoch() - 2;
  for (std::uint64_t step = 0; step < std::min<std::uint64_t>(num_full, 30); ++step)
    worst = std::max(worst, source.excess_of_busiest(step, 1));
  return worst;
}

TEST(StepBatchSource, DividesWikipediaIntoMicroBatchesOfEqualCost) {
  EXPECT_LT(worst_excess("16", 16), 0.002);
  EXPECT_LT(worst_excess("8192tok", 16), 0.002);
  EXPECT_LT(worst_excess("4096tok", 16), 0.005);
}

TEST(StepBatchSource, CountsTheWholeGlobalBatchOnEveryRank) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(4, 64));
  const StepBatchSource source(sequences, options_for(Layout::Padded), small_model(), 3, 7);
  const std::vector<batch::StepBatch> ranks = source.make(2);
  batch::Work total;
  for (const batch::StepBatch& batch : ranks) {
    for (const batch::MicroBatch& micro_batch : batch.micro_batches) total += micro_batch.work();
  }
  for (const batch::StepBatch& batch : ranks) {
    EXPECT_EQ(batch.step, 2U);
    EXPECT_EQ(batch.global.tokens, total.tokens);
    EXPECT_EQ(batch.global.squared_lengths, total.squared_lengths);
    EXPECT_EQ(batch.global.labels, total.labels);
    EXPECT_EQ(batch.global.sequences, total.sequences);
    EXPECT_EQ(batch.work.size(), 3 * source.micro_batches_per_rank());
    for (const batch::StepBatch& of_rank : ranks) {
      for (std::size_t i = 0; i < of_rank.micro_batches.size(); ++i) {
        const batch::Work& counted = batch.work[of_rank.first_micro_batch + i];
        const batch::Work own = of_rank.micro_batches[i].work();
        EXPECT_EQ(counted.tokens, own.tokens);
        EXPECT_EQ(counted.sequences, own.sequences);
        EXPECT_EQ(counted.squared_lengths, own.squared_lengths);
        EXPECT_EQ(counted.labels, own.labels);
      }
    }
  }
  EXPECT_EQ(total.sequences, 17);
}

TEST(StepBatchSource, NumbersMicroBatchesAsTheScheduleDoes) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(5, 64));
  const StepBatchSource source(sequences, options_for(Layout::Unpadded), small_model(), 3, 7);
  schedule::GeneratorOptions generator;
  generator.depth = 1;
  generator.num_replicas = source.num_ranks();
  generator.num_micro_batches = source.micro_batches_per_rank();
  generator.stage_layers = {2};
  const schedule::Schedule schedule = schedule::generate_data_parallel(generator);
  const schedule::Dataflow dataflow(schedule);
  ASSERT_EQ(schedule.problem.num_micro_batches, source.num_micro_batches());
  const std::vector<batch::StepBatch> ranks = source.make(0);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::size_t num_filled = 0;
    ASSERT_EQ(ranks[rank].micro_batches.size(), source.micro_batches_per_rank());
    for (std::size_t i = 0; i < ranks[rank].micro_batches.size(); ++i) {
      const auto id = base::MicroBatchId::at(ranks[rank].first_micro_batch + i);
      EXPECT_EQ(dataflow.runner({0}, id), base::Rank::at(rank));
      if (!ranks[rank].micro_batches[i].starts.empty()) ++num_filled;
    }
    EXPECT_GE(num_filled, 1U);
    EXPECT_FALSE(ranks[rank].micro_batches.back().starts.empty());
  }
}

TEST(StepBatchSource, MakesOneRankAsItMakesAll) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(6, 64));
  const StepBatchSource source(sequences, options_for(Layout::Packed), small_model(), 2, 7);
  const std::vector<batch::StepBatch> all = source.make(1);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(collect({source.make(1, base::Rank::at(rank))}), collect({all[rank]}));
  }
}

TEST(StepBatchSource, HasNoPaddingUnlessTheLayoutHas) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(7, 64));
  const auto rows_and_tokens = [&](Layout layout) {
    const StepBatchSource source(sequences, options_for(layout, OrderChoice::Packs), small_model(), 1, 7);
    std::pair<std::int64_t, std::int64_t> sums;
    const batch::StepBatch batch = source.make(0).front();
    for (const batch::MicroBatch& micro_batch : batch.micro_batches) sums.first += micro_batch.num_rows;
    sums.second = batch.global.tokens;
    return sums;
  };
  const auto [unpadded_rows, tokens] = rows_and_tokens(Layout::Unpadded);
  EXPECT_EQ(unpadded_rows, tokens);
  const std::int64_t packed_rows = rows_and_tokens(Layout::Packed).first;
  const std::int64_t padded_rows = rows_and_tokens(Layout::Padded).first;
  EXPECT_EQ(packed_rows % 64, 0);
  EXPECT_EQ(padded_rows % 64, 0);
  EXPECT_GE(packed_rows, tokens);
  EXPECT_GT(padded_rows, packed_rows);
}

TEST(StepBatchSource, PacksAsThePlanOfAFileSays) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(7, 64));
  const test::TemporaryDirectory directory;
  const packing::PackingPlan plan =
      packing::pack_lpfhp({.histogram = sequences.histogram(), .capacity = 64, .depth = 2});
  TrainingDataOptions from_file = options_for(Layout::Packed);
  from_file.packing_plan = directory.write("plan.json", print_packing_plan(plan));
  TrainingDataOptions made = options_for(Layout::Packed);
  made.packing_depth = 2;
  const StepBatchSource source(sequences, from_file, small_model(), 2, 7);
  EXPECT_EQ(collect(source.make(3)), collect(StepBatchSource(sequences, made, small_model(), 2, 7).make(3)));

  const test::SyntheticSequences others = synthetic(random_lengths(8, 64));
  EXPECT_THAT(test::user_error_of([&] { StepBatchSource(others, from_file, small_model(), 2, 7); }),
              HasSubstr("the packing plan does not belong to these sequences"));
}

TEST(StepBatchSource, RefusesSequencesThatDoNotBelongToTheModel) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  const auto error_with = [&](describe::ModelConfig model, std::int64_t rows = 150) {
    TrainingDataOptions options = options_for(Layout::Unpadded);
    options.micro_batch_tokens = rows;
    return test::user_error_of([&] { StepBatchSource(sequences, options, model, 1, 7); });
  };
  describe::ModelConfig model = small_model();
  model.vocabulary = 100;
  EXPECT_THAT(error_with(model), HasSubstr("has a vocabulary of 101 tokens, the model one of 100"));
  model.vocabulary = 128;
  EXPECT_EQ(error_with(model), "no error") << "embeddings are often padded";
  EXPECT_THAT(error_with(small_model(63)), HasSubstr("--max-length 63"));
  model = small_model();
  model.has_next_sentence = true;
  EXPECT_THAT(error_with(model), HasSubstr("has no next-sentence pairs"));
  EXPECT_THAT(error_with(small_model(), 63), HasSubstr("must be at least 64"));
  EXPECT_EQ(error_with(small_model(), 64), "no error");
}

TEST(StepBatchSource, DividesByWhatAttentionCosts) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  TrainingDataOptions options;
  options.global_batch = "12";
  constexpr double kDear = 1000;
  const StepBatchSource by_operations(sequences, options, small_model(), 3, 7);
  const StepBatchSource by_cost(sequences, options, small_model(), 3, 7, kDear);
  double excess_by_operations = 0;
  double excess_by_cost = 0;
  for (std::uint64_t step = 0; step < 10; ++step) {
    excess_by_operations += by_operations.excess_of_busiest(step, kDear);
    excess_by_cost += by_cost.excess_of_busiest(step, kDear);
    EXPECT_EQ(collect(by_operations.make(step)), collect(by_cost.make(step))) << "only who has what changes";
  }
  EXPECT_LT(excess_by_cost, 0.7 * excess_by_operations);
}

}  // namespace
}  // namespace plenum::data
