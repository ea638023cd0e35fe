// Ten steps of AdamW against PyTorch's in float64, from a golden file.

#include <cmath>

#include <gtest/gtest.h>

#include "tests/pipeline/bert_run.h"
#include "tests/support/bert_golden.h"

namespace plenum::pipeline {
namespace {

using plenum::test::BertGolden;
using plenum::test::capacity_of;

constexpr double kParity = 1e-5;

TEST(BertParity, TenAdamWStepsAgreeWithPyTorch) {
  const BertGolden golden;
  const auto steps = golden.read<double>("steps");
  const describe::ModelConfig model = BertGolden::config();
  const auto sequences = golden.sequences();
  const batch::StepBatch first = deal_out(0, sequences, 1);
  BertRun run(bert_schedule(model, 1, 1), {.model = model, .capacity = capacity_of(first.micro_batches)});
  golden.read_weights(run.program().parameters(), run.program().buffers().weights_N.span<float>());
  for (std::uint64_t step = 0; step < 10; ++step) {
    const StepOutcome& outcome = run.step(deal_out(step, sequences, 1), 1e-3);
    EXPECT_NEAR(outcome.losses[0], steps[3 * step], kParity * steps[3 * step]) << "step " << step;
    EXPECT_NEAR(outcome.losses[1], steps[3 * step + 1], kParity * steps[3 * step + 1]) << "step " << step;
    EXPECT_NEAR(outcome.gradient_norm, steps[3 * step + 2], kParity * steps[3 * step + 2]) << "step " << step;
  }
  const std::vector<float> weights = run.weights();
  for (const describe::Parameter& parameter : run.program().parameters().parameters()) {
    // PyTorch's gradient of a key's bias is nothing but rounding, which Adam blows up to steps of any sign.
    if (parameter.name.ends_with("key.bias")) continue;
    double squares = 0;
    for (std::int64_t i = parameter.begin; i < parameter.end(); ++i) {
      squares += std::pow(double{weights[static_cast<std::size_t>(i)]}, 2);
    }
    const double expected = golden.read<double>("final_norm:" + parameter.name).front();
    EXPECT_NEAR(std::sqrt(squares), expected, kParity * expected) << parameter.name;
  }
}

}  // namespace
}  // namespace plenum::pipeline
