#include "plenum/schedule/generate/zero_bubble_h1.h"

#include <algorithm>

#include "plenum/schedule/generate/generator_options.h"

namespace plenum::schedule {

Schedule generate_zero_bubble_h1(const GeneratorOptions& options) {
  StepDraft draft = begin_draft("zb-h1", options, options.depth);
  const StageLayers layers(draft.problem);
  const std::size_t num_micro_batches = options.num_micro_batches;
  for (std::size_t rank = 0; rank < draft.compute.size(); ++rank) {
    const std::size_t position = rank % options.depth;
    const StageId stage = StageId::at(position);
    const std::size_t first = rank / options.depth * num_micro_batches;
    const std::size_t num_ahead = std::min(options.depth - 1 - position, num_micro_batches);
    // Weight gradients trail the forwards by as much on every stage: later stages hold back more of them.
    const std::size_t weight_delay = num_ahead + std::min(position, num_micro_batches);
    draft.stages[rank] = {stage};
    std::vector<Action>& work = draft.compute[rank];
    for (std::size_t i = 0; i < num_micro_batches + weight_delay; ++i) {
      if (i < num_micro_batches) add_forward(layers, stage, MicroBatchId::at(first + i), work);
      if (i >= num_ahead && i - num_ahead < num_micro_batches) {
        add_input_gradient(layers, draft.problem, stage, MicroBatchId::at(first + i - num_ahead), work);
      }
      if (i >= weight_delay) {
        add_weight_gradient(layers, stage, MicroBatchId::at(first + i - weight_delay), work);
      }
    }
  }
  return complete_step(std::move(draft));
}

}  // namespace plenum::schedule
