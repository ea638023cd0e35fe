#pragma once

#include <array>
#include <cstddef>

#include "plenum/base/check.h"
#include "plenum/kernels/step_numbers.h"

namespace plenum::model {

// Which of a step's numbers belong to an objective, by its place in the model.

inline kernels::StepNumber loss_number(std::size_t objective) {
  constexpr std::array kNumbers = {kernels::StepNumber::MaskedLoss, kernels::StepNumber::NextSentenceLoss};
  base::check(objective < kNumbers.size(), "steps have numbers for {} objectives", kNumbers.size());
  return kNumbers[objective];
}

inline kernels::StepNumber scale_number(std::size_t objective) {
  constexpr std::array kNumbers = {kernels::StepNumber::MaskedScale, kernels::StepNumber::NextSentenceScale};
  base::check(objective < kNumbers.size(), "steps have numbers for {} objectives", kNumbers.size());
  return kNumbers[objective];
}

}  // namespace plenum::model
