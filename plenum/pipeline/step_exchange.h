#pragma once

#include <array>
#include <cstddef>

#include "plenum/batch/step_batch.h"
#include "plenum/batch/work.h"
#include "plenum/describe/model_description.h"
#include "plenum/kernels/step_scalars.h"
#include "plenum/pipeline/step_outcome.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::pipeline {

/// A step's scalars on the host (kernels::StepScalar).
using HostScalars = std::array<double, kernels::kNumStepScalars>;

/// What the host tells a step and is told by it. On a GPU it lies in memory that the GPU reaches by itself.
struct ExchangedScalars {
  HostScalars given{};    ///< before it begins
  HostScalars decided{};  ///< when it has ended
};

tensor::TensorView view_of(HostScalars& scalars, std::size_t count = kernels::kNumStepScalars);

/// What a step that works on a batch begins with.
HostScalars given_to_step(const batch::StepBatch& batch, const describe::ModelDescription& model,
                          double learning_rate, const DueByClock& due, bool is_stop_asked);

/// What it gave, by the scalars that it ended with.
StepOutcome outcome_of(const HostScalars& decided, const batch::Work& global,
                       const describe::ModelDescription& model);

}  // namespace plenum::pipeline
