#pragma once

#include <cstddef>
#include <vector>

#include "plenum/kernels/accumulate.h"
#include "plenum/schedule/core/action.h"

namespace plenum::pipeline {

/// Which gradients of a step have been begun: the first backward through a layer overwrites what the step
/// before left there, whichever micro-batch it works on, and the others add. A split backward begins twice:
/// with its input gradient and, for the weights of linear maps, with its weight gradient.
class BegunGradients {
 public:
  explicit BegunGradients(std::size_t num_layers) : others_(num_layers), weights_(num_layers) {}

  void begin_step();
  /// Whether a backward, or a half of one, adds to the gradients of its layers; from now on all do. Throws
  /// InternalError if they have had different micro-batches.
  kernels::Accumulate begin(const schedule::Action& backward);
  /// Whether this is the first time in the step that the gradient of a tied word table is asked for.
  bool begin_tied();

 private:
  static kernels::Accumulate begin(const schedule::Action& backward, std::vector<bool>& has_gradient);

  std::vector<bool> others_;   ///< by layer
  std::vector<bool> weights_;  ///< of linear maps, by layer
  bool has_tied_ = false;
};

}  // namespace plenum::pipeline
