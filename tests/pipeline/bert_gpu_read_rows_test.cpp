#include <algorithm>
#include <array>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/pipeline/bert_run.h"
#include "tests/pipeline/step_result.h"
#include "tests/support/on_gpu.h"
#include "tests/support/wide_heads.h"

// Training on a GPU where heads read none, few or all rows of a micro-batch.

namespace plenum::pipeline {
namespace {

using batch::MicroBatch;
using plenum::test::wide_heads;
using tensor::Device;

void clear_masked(MicroBatch& batch) {
  batch.objectives[0].rows.clear();
  batch.objectives[0].labels.clear();
}
/// With one label for all sequences: the gradients of different ones nearly cancel, and roundings do not.
void leave_next_sentence(MicroBatch& batch) {
  clear_masked(batch);
  std::ranges::fill(batch.objectives[1].labels, 1);
}
void clear_labels(MicroBatch& batch) {
  batch.objectives[1] = {};
}
void clear_both(MicroBatch& batch) {
  clear_masked(batch);
  clear_labels(batch);
}
/// Heads then read more rows than there are: first ones twice.
void mask_every_token(MicroBatch& batch) {
  batch.objectives[0].rows.resize(static_cast<std::size_t>(batch.num_rows));
  std::iota(batch.objectives[0].rows.begin(), batch.objectives[0].rows.end(), 0);
  batch.objectives[0].labels = batch.ids;
}

struct Change {
  const char* name;
  void (*apply)(MicroBatch& batch);
};
constexpr std::array<Change, 4> kChanges = {{{"no masked tokens", leave_next_sentence},
                                             {"no labels", clear_labels},
                                             {"neither", clear_both},
                                             {"every token masked", mask_every_token}}};

MicroBatch unchanged() {
  return test::lay_out(test::random_sequences(9, 200, 97, 5));
}
MicroBatch changed(const Change& change) {
  MicroBatch batch = unchanged();
  change.apply(batch);
  return batch;
}

batch::StepBatch step_of(std::uint64_t step, const std::vector<MicroBatch>& micro_batches) {
  batch::StepBatch batch{.step = step, .epoch = 1, .global = {}, .micro_batches = micro_batches};
  for (const MicroBatch& micro_batch : micro_batches) batch.global += micro_batch.work();
  return batch;
}

/// With room for any change.
BertProgramOptions options_on(Device device) {
  batch::Capacity capacity = test::capacity_of(unchanged());
  capacity.labels[0] = capacity.rows;
  return {.model = wide_heads(), .capacity = capacity, .seed = 17, .device = device};
}

BertRun run_of(const BertProgramOptions& options, std::size_t num_micro_batches) {
  return {bert_schedule(options.model, 1, num_micro_batches), options};
}

/// Whatever the gradients were before.
StepResult first_step(const BertProgramOptions& options, const std::vector<MicroBatch>& micro_batches) {
  BertRun run = run_of(options, micro_batches.size());
  run.spoil_gradients();
  return result_of(run, step_of(0, micro_batches));
}

using BertOnGpu = test::OnGpu<>;

TEST_F(BertOnGpu, HasTheGradientsOfTheCpuWhateverHeadsRead) {
  for (const Change& change : kChanges) {
    SCOPED_TRACE(change.name);
    // By itself, and as the micro-batch that begins gradients and one that adds to them.
    for (const auto& micro_batches :
         {std::vector{changed(change)}, std::vector{changed(change), unchanged(), changed(change)}}) {
      SCOPED_TRACE(micro_batches.size());
      expect_in_band(first_step(options_on(Device::Cuda), micro_batches),
                     first_step(options_on(Device::Cpu), micro_batches), test::kBFloat16Gradient);
    }
  }
}

TEST_F(BertOnGpu, GivesTheSameBytesRecordedOrNotWhateverHeadsRead) {
  BertProgramOptions plain_options = options_on(Device::Cuda);
  plain_options.records_work = false;
  for (const Change& change : kChanges) {
    SCOPED_TRACE(change.name);
    const std::vector micro_batches = {changed(change), unchanged(), changed(change)};
    BertRun recorded = run_of(options_on(Device::Cuda), micro_batches.size());
    BertRun plain = run_of(plain_options, micro_batches.size());
    // Enough steps for recordings to be made and to run.
    for (std::uint64_t step = 0; step < 6; ++step) {
      const batch::StepBatch batch = step_of(step, micro_batches);
      recorded.spoil_gradients();
      const StepOutcome outcome = recorded.step(batch);
      EXPECT_FALSE(outcome.is_skipped);
      EXPECT_EQ(outcome.loss(), plain.step(batch).loss()) << step;
    }
    EXPECT_TRUE(are_same(recorded.gradients(), plain.gradients()));
    EXPECT_TRUE(are_same(recorded.weights(), plain.weights()));
  }
}

TEST_F(BertOnGpu, ReadsNoLabelsWithoutANextSentenceHead) {
  BertProgramOptions options = options_on(Device::Cuda);
  options.model.has_next_sentence = false;
  const StepResult labelled = first_step(options, {unchanged()});
  const StepResult unlabelled = first_step(options, {changed({"no labels", clear_labels})});
  EXPECT_GT(labelled.outcome.losses[0], 0);
  EXPECT_EQ(labelled.outcome.losses[1], 0);
  EXPECT_EQ(labelled.outcome.loss(), unlabelled.outcome.loss());
  EXPECT_TRUE(are_same(labelled.gradients, unlabelled.gradients));
}

}  // namespace
}  // namespace plenum::pipeline
#include "plenum/batch/micro_batch.h"
#include "plenum/batch/step_batch.h"
