#pragma once

#include "plenum/schedule/generate/complete_step.h"
#include "plenum/schedule/generate/generator.h"

namespace plenum::schedule {

/// The draft that all pipelines begin with: the problem of `num_stages` stages, every rank without stages and
/// work. Throws UserError if the options cannot be met.
StepDraft begin_draft(std::string name, const GeneratorOptions& options, std::size_t num_stages);

/// Appends a forward to a rank's work.
void add_forward(const StageLayers& layers, StageId stage, MicroBatchId micro_batch,
                 std::vector<Action>& work);

/// Appends a backward to a rank's work; where the problem recomputes, the recomputation and the backward of
/// one layer after the other.
void add_backward(const StageLayers& layers, const Problem& problem, StageId stage, MicroBatchId micro_batch,
                  std::vector<Action>& work);

/// Appends the first half of a backward to a rank's work, with recomputations as add_backward() has them.
void add_input_gradient(const StageLayers& layers, const Problem& problem, StageId stage,
                        MicroBatchId micro_batch, std::vector<Action>& work);

/// Appends the second half.
void add_weight_gradient(const StageLayers& layers, StageId stage, MicroBatchId micro_batch,
                         std::vector<Action>& work);

}  // namespace plenum::schedule
