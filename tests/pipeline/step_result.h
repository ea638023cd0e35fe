#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/batch/step_batch.h"
#include "plenum/describe/bert.h"
#include "plenum/model/named_tensors.h"

#include "tests/pipeline/bert_run.h"
#include "tests/support/bfloat16_band.h"
#include "tests/support/wide_heads.h"

namespace plenum::pipeline {

/// Losses and all gradients of a step.
struct StepResult {
  StepOutcome outcome;
  std::vector<float> gradients;
};

inline StepResult result_of(BertRun& run, const batch::StepBatch& batch) {
  const StepOutcome outcome = run.step(batch);
  return {outcome, run.gradients()};
}

/// Of wide_heads().
inline void expect_in_band(StepResult actual, StepResult expected, double gradient_band) {
  using test::kBFloat16Loss;
  EXPECT_FALSE(actual.outcome.is_skipped);
  testing::Test::RecordProperty("masked_loss",
                                std::to_string(actual.outcome.losses[0] / expected.outcome.losses[0] - 1));
  EXPECT_NEAR(actual.outcome.losses[0], expected.outcome.losses[0],
              kBFloat16Loss * expected.outcome.losses[0]);
  EXPECT_NEAR(actual.outcome.losses[1], expected.outcome.losses[1],
              kBFloat16Loss * expected.outcome.losses[1]);
  EXPECT_NEAR(actual.outcome.gradient_norm, expected.outcome.gradient_norm,
              gradient_band * expected.outcome.gradient_norm);
  const describe::ParameterTable table(describe::describe_bert(test::wide_heads()));
  for (const describe::Parameter& parameter : table.parameters()) {
    test::expect_gradient_in_band(parameter.name, model::elements_of(parameter, actual.gradients),
                                  model::elements_of(parameter, expected.gradients), gradient_band);
  }
}

/// Bit by bit: numbers that are not finite are equal too.
inline bool are_same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace plenum::pipeline
