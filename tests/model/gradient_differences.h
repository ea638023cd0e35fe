#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tests/model/model_run.h"
#include "tests/ops/op_testing.h"

namespace plenum::model {

/// Random weights; those of norms around 1.
inline void fill_randomly(ModelRun& run) {
  for (const describe::Parameter& parameter : run.table().parameters()) {
    const bool is_gamma = parameter.kind == describe::ParameterKind::NormWeight;
    const auto begin = static_cast<std::size_t>(parameter.begin);
    const ops::TestTensor<float> values = ops::random_tensor(parameter.shape, begin, 0.4);
    for (std::size_t i = 0; i < values.values().size(); ++i) {
      run.weights()[begin + i] = values.values()[i] + (is_gamma ? 1.0F : 0.0F);
    }
  }
}

/// Expects that a backward added to gradients, all of which were `before`, the central differences of `loss`:
/// that of the flat weights, as they lie in `flat` when it is called.
inline void expect_differences(const ModelRun& run, float before, std::vector<double>& flat,
                               const std::function<double()>& loss) {
  for (const describe::Parameter& parameter : run.table().parameters()) {
    const std::span<const float> gradient = run.gradient(parameter);
    double largest = 0;
    for (const float value : gradient) largest = std::max(largest, std::abs(double{value} - before));
    // Two elements of every tensor stand for the rest, which the ops' own tests go through.
    for (const std::size_t i : {std::size_t{0}, gradient.size() * 2 / 3}) {
      double& weight = flat[static_cast<std::size_t>(parameter.begin) + i];
      const double at = weight;
      weight = at + ops::kDifferenceStep;
      const double above = loss();
      weight = at - ops::kDifferenceStep;
      const double below = loss();
      weight = at;
      // What was there before takes its share of the digits.
      EXPECT_NEAR(gradient[i] - before, (above - below) / (2 * ops::kDifferenceStep),
                  ops::kGradientRelative * largest + 4e-7 * before)
          << parameter.name << " element " << i;
    }
  }
}

}  // namespace plenum::model
