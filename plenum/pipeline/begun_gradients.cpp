#include "plenum/pipeline/begun_gradients.h"

#include <algorithm>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::pipeline {

using kernels::Accumulate;
using schedule::ActionType;

void BegunGradients::begin_step() {
  others_.assign(others_.size(), false);
  weights_.assign(weights_.size(), false);
  has_tied_ = false;
}

Accumulate BegunGradients::begin(const schedule::Action& backward) {
  if (backward.type == ActionType::InputGradient) return begin(backward, others_);
  if (backward.type == ActionType::WeightGradient) return begin(backward, weights_);
  const Accumulate of_others = begin(backward, others_);
  base::check(begin(backward, weights_) == of_others,
              "layers {} to {} have had a backward of which only one half was run",
              backward.first_layer.index(), backward.end_layer.index());
  return of_others;
}

bool BegunGradients::begin_tied() {
  return !std::exchange(has_tied_, true);
}

Accumulate BegunGradients::begin(const schedule::Action& backward, std::vector<bool>& has_gradient) {
  const auto begin = has_gradient.begin() + static_cast<std::ptrdiff_t>(backward.first_layer.index());
  const auto end = has_gradient.begin() + static_cast<std::ptrdiff_t>(backward.end_layer.index());
  const bool is_accumulated = *begin;
  base::check(std::all_of(begin, end, [&](bool has) { return has == is_accumulated; }),
              "layers {} to {} have had different micro-batches", backward.first_layer.index(),
              backward.end_layer.index());
  std::fill(begin, end, true);
  return is_accumulated ? Accumulate::Yes : Accumulate::No;
}

}  // namespace plenum::pipeline
