// Plenum against Hugging Face's BertForPreTraining in float64, from a golden file.

#include <cmath>

#include <gtest/gtest.h>

#include "plenum/batch/micro_batch.h"
#include "plenum/model/inference.h"

#include "tests/model/model_run.h"
#include "tests/ops/op_testing.h"
#include "tests/support/bert_golden.h"

namespace plenum::model {
namespace {

using plenum::test::BertGolden;
using plenum::test::capacity_of;
using plenum::test::lay_out;

constexpr double kParity = 1e-5;

/// The same sequences unpadded and padded.
std::vector<batch::MicroBatch> layouts(const BertGolden& golden) {
  return {lay_out(golden.sequences()), lay_out(golden.sequences(), 24)};
}

TEST(BertParity, LogitsAndLossesAgreeWithPyTorch) {
  const BertGolden golden;
  const auto steps = golden.read<double>("steps");
  for (const batch::MicroBatch& batch : layouts(golden)) {
    SCOPED_TRACE(batch.num_rows);
    ModelRun run(BertGolden::config(), capacity_of(batch));
    golden.read_weights(run.table(), run.weights());
    const LossSums sums = run.forward(batch);
    const auto num_masked = static_cast<double>(batch.objectives[0].rows.size());
    const auto num_sequences = static_cast<double>(batch.starts.size());
    EXPECT_NEAR(sums.masked / num_masked, steps[0], kParity * steps[0]);
    EXPECT_NEAR(sums.next_sentence / num_sequences, steps[1], kParity * steps[1]);
    ops::expect_near(run.kept().heads[0].logits_MW.span<float>(), golden.expected("masked_logits"),
                     "masked logits", kParity);
    ops::expect_near(run.kept().heads[1].logits_MW.span<float>(), golden.expected("next_sentence_logits"),
                     "next-sentence logits", kParity);
  }
}

TEST(BertParity, EveryGradientAgreesWithPyTorch) {
  const BertGolden golden;
  for (const batch::MicroBatch& batch : layouts(golden)) {
    SCOPED_TRACE(batch.num_rows);
    ModelRun run(BertGolden::config(), capacity_of(batch));
    golden.read_weights(run.table(), run.weights());
    run.forward(batch);
    run.backward(batch, {.masked = 1.0F / static_cast<float>(batch.objectives[0].rows.size()),
                         .next_sentence = 1.0F / static_cast<float>(batch.starts.size())});
    for (const describe::Parameter& parameter : run.table().parameters()) {
      if (parameter.name.ends_with("key.bias")) {
        // Softmax does not see what is added to all scores of a query.
        for (const float value : run.gradient(parameter)) EXPECT_EQ(value, 0);
        continue;
      }
      ops::expect_near(run.gradient(parameter), golden.expected("gradient:" + parameter.name), parameter.name,
                       kParity);
    }
  }
}

TEST(BertParity, InferenceGivesTheSameLogitsAndLosses) {
  const BertGolden golden;
  const auto steps = golden.read<double>("steps");
  const std::vector<double> logits = golden.expected("masked_logits");
  for (const batch::MicroBatch& batch : layouts(golden)) {
    SCOPED_TRACE(batch.num_rows);
    BertInference inference(BertGolden::config(), capacity_of(batch), 2);
    golden.read_weights(inference.parameters(), inference.weights().span<float>());
    ops::expect_near(inference.logits(batch), logits, "masked logits", kParity);

    const EvaluationSums sums = inference.evaluate(batch);
    EXPECT_EQ(sums.objectives[0].num_losses, 13);
    EXPECT_EQ(sums.objectives[1].num_losses, 5);
    EXPECT_NEAR(sums.objectives[0].loss / 13, steps[0], kParity * steps[0]);
    EXPECT_NEAR(sums.objectives[1].loss / 5, steps[1], kParity * steps[1]);
    std::int64_t correct = 0;
    for (std::size_t i = 0; i < batch.objectives[0].labels.size(); ++i) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(97 * i);
      correct += std::max_element(row, row + 97) - row == batch.objectives[0].labels[i];
    }
    EXPECT_EQ(sums.objectives[0].correct, correct);

    BertInference borrower(BertGolden::config(), capacity_of(batch), 1,
                           weights_of(inference.parameters(),
                                      {.exact_N = inference.weights(), .compute_N = inference.weights()}));
    EXPECT_EQ(borrower.evaluate(batch).objectives[0].loss, sums.objectives[0].loss);
    EXPECT_LT(borrower.memory().num_bytes(), inference.memory().num_bytes());
  }
}

}  // namespace
}  // namespace plenum::model
