#pragma once

#include <cstddef>

#include "plenum/base/check.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

/// The numbers of a training step, as elements of a Float64 tensor that lies where the kernels run: so what
/// depends on a step's losses and gradients is decided there, and the host need not wait for it.
enum class StepNumber : std::size_t {
  // Sums over the micro-batches; the ranks add theirs up.
  MaskedLoss,
  NextSentenceLoss,
  GradientSquares,  ///< each rank's of the elements that it counts: the square of the whole gradient's norm
  Stop,             ///< above 0 where a rank asks for it
  TimeUp,           ///< above 0 where the clock of a rank says so, as the next two
  CheckpointDue,
  EvaluationDue,
  // What the host says before the step begins.
  MaskedScale,        ///< of losses in the gradient: 1 / masked tokens of the global batch
  NextSentenceScale,  ///< 1 / its sequences
  LearningRate,
  // What goes on from step to step.
  NumUpdates,  ///< steps that were not skipped
  // What decide_step decides.
  GradientNorm,   ///< before clipping
  GradientScale,  ///< that clips
  IsSkipped,      ///< 1 where loss or gradient are not finite: nothing is changed
  Correction1,    ///< 1 - beta1^t of update t, or 1 without bias correction
  Correction2,
};
inline constexpr std::size_t kNumAgreedNumbers = 7;  ///< that ranks add up, from the first
inline constexpr std::size_t kNumGivenNumbers = 10;  ///< that are written before a step, from the first
inline constexpr std::size_t kNumStepNumbers = 16;

/// One of them, for kernels that read or add to a single number.
template <typename Void>
tensor::BasicTensorView<Void> step_number(const tensor::BasicTensorView<Void>& numbers_C, StepNumber which) {
  return {numbers_C.template data<double>() + static_cast<std::size_t>(which), {1}};
}

}  // namespace plenum::kernels
