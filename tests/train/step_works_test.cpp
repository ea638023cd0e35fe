#include "plenum/train/step_works.h"

#include <gtest/gtest.h>

#include "plenum/data/batches/dataset_sequences.h"
#include "plenum/data/batches/histogram_sequences.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/starting_model.h"

#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

class StepWorksTest : public TrainingTest {};

TEST_F(StepWorksTest, AreThoseOfTheStepsThatTrainingMakes) {
  const RunOptions given = options("run");
  const PreparedData dataset(given.data.directory);
  const data::SequenceSource& sequences = dataset.training();
  const describe::ModelConfig model = starting_model(given.model, dataset);
  for (const batch::MicroBatchCut& cut :
       {batch::MicroBatchCut{.tokens = 100}, batch::MicroBatchCut{.count = 3}}) {
    for (const std::size_t replicas : {1U, 2U, 3U}) {
      data::TrainingDataOptions settings = given.data;
      settings.micro_batch_tokens = cut.tokens;
      settings.micro_batches = cut.count;
      const data::StepBatchSource batches(sequences, settings, model, replicas, 3);
      const StepWorks works(sequences, given.data, model, 3);
      const plan::StepLimits limits = works.limits(replicas, cut);
      EXPECT_EQ(limits.micro_batches_per_replica, batches.micro_batches_per_rank());
      EXPECT_EQ(limits.capacity, batches.capacity());
      const plan::StepWork sampled = works.sample(replicas, cut, 2).front();
      const std::vector<batch::StepBatch> made = batches.make(0);
      ASSERT_EQ(sampled.micro_batches.size(), batches.num_micro_batches());
      for (const batch::StepBatch& of_rank : made) {
        for (std::size_t i = 0; i < of_rank.micro_batches.size(); ++i) {
          const batch::MicroBatch& micro_batch = of_rank.micro_batches[i];
          const plan::MicroBatchWork& work = sampled.micro_batches[of_rank.first_micro_batch + i];
          EXPECT_EQ(work.rows, micro_batch.num_rows);
          EXPECT_EQ(work.work.tokens, micro_batch.work().tokens);
          EXPECT_EQ(work.work.squared_lengths, micro_batch.work().squared_lengths);
          EXPECT_EQ(work.work.labels, micro_batch.work().labels);
        }
      }
    }
  }
}

TEST_F(StepWorksTest, NeedLengthsAlone) {
  const RunOptions given = options("run");
  const PreparedData dataset(given.data.directory);
  const data::SequenceSource& sequences = dataset.training();
  const data::HistogramSequences lengths(sequences.histogram(), sequences.max_length(), false, "lengths");
  const describe::ModelConfig model = starting_model(given.model, dataset);
  const StepWorks of_data(sequences, given.data, model, 3);
  const StepWorks of_lengths(lengths, given.data, model, 3);
  EXPECT_EQ(of_lengths.tokens_per_step(), of_data.tokens_per_step());
  const auto expected = of_data.sample(2, {.tokens = 100}, 3);
  const auto found = of_lengths.sample(2, {.tokens = 100}, 3);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t step = 0; step < found.size(); ++step) {
    for (std::size_t i = 0; i < found[step].micro_batches.size(); ++i)
      EXPECT_EQ(found[step].micro_batches[i].rows, expected[step].micro_batches[i].rows);
  }
  std::vector<data::TokenId> tokens;
  std::vector<std::uint8_t> segments;
  EXPECT_THROW(lengths.append(0, tokens, segments), base::InternalError);
  EXPECT_THROW(data::HistogramSequences({}, 10, false, "lengths"), base::UserError);
  EXPECT_THROW(data::HistogramSequences(sequences.histogram(), 1, false, "lengths"), base::UserError);
}

}  // namespace
}  // namespace plenum::train
