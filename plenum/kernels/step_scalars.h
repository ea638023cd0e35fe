#pragma once

#include <cstddef>

#include "plenum/base/check.h"
#include "plenum/batch/label_counts.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

/// The scalars of a training step, as elements of a Float64 tensor that lies where the kernels run: so what
/// depends on a step's losses and gradients is decided there, and the host need not wait for it.
enum class StepScalar : std::size_t {
  // Sums over the micro-batches; the ranks add theirs up.
  FirstLoss,  ///< of the first objective; loss_of() names the others'
  /// Each rank's of the elements that it counts: together the square of the whole gradient's norm.
  GradientSquares = FirstLoss + batch::kMostObjectives,
  // Above 0 where a rank says so.
  Stop,           ///< it asks for it
  TimeUp,         ///< by its clock
  CheckpointDue,  ///< by its clock
  EvaluationDue,  ///< by its clock
  // What the host says before the step begins.
  FirstLossScale,  ///< of the first objective; loss_scale_of() names the others'
  LearningRate = FirstLossScale + batch::kMostObjectives,
  // What goes on from step to step.
  NumUpdates,  ///< steps that were not skipped
  // What decide_step decides.
  GradientNorm,   ///< before clipping
  GradientScale,  ///< that clips
  IsSkipped,      ///< 1 where loss or gradient are not finite: nothing is changed
  Correction1,    ///< 1 - beta1^t of update t, or 1 without bias correction
  Correction2,
};

constexpr std::size_t index_of(StepScalar which) {
  return static_cast<std::size_t>(which);
}

/// That ranks add up, from the first.
inline constexpr std::size_t kNumAgreedScalars = index_of(StepScalar::FirstLossScale);
/// That are written before a step, from the first.
inline constexpr std::size_t kNumGivenScalars = index_of(StepScalar::NumUpdates);
inline constexpr std::size_t kNumStepScalars = index_of(StepScalar::Correction2) + 1;

/// The sum of an objective's losses.
inline StepScalar loss_of(std::size_t objective_index) {
  base::check(objective_index < batch::kMostObjectives, "a step has no objective {}", objective_index);
  return static_cast<StepScalar>(index_of(StepScalar::FirstLoss) + objective_index);
}
/// What its losses are multiplied by in the gradient: 1 / their number in the global batch.
inline StepScalar loss_scale_of(std::size_t objective_index) {
  base::check(objective_index < batch::kMostObjectives, "a step has no objective {}", objective_index);
  return static_cast<StepScalar>(index_of(StepScalar::FirstLossScale) + objective_index);
}

/// One of them, for kernels that read or add to a single scalar.
template <typename Void>
tensor::BasicTensorView<Void> step_scalar(const tensor::BasicTensorView<Void>& scalars_C, StepScalar which) {
  return {scalars_C.template data<double>() + index_of(which), {1}};
}

}  // namespace plenum::kernels
