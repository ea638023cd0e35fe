#include "plenum/schedule/generate/one_forward_one_backward.h"

#include <algorithm>

#include "plenum/schedule/generate/generator_options.h"

namespace plenum::schedule {

Schedule generate_one_forward_one_backward(const GeneratorOptions& options) {
  StepDraft draft = begin_draft("1f1b", options, options.depth);
  const StageLayers layers(draft.problem);
  for (std::size_t rank = 0; rank < draft.compute.size(); ++rank) {
    const std::size_t position = rank % options.depth;
    const StageId stage = StageId::at(position);
    const std::size_t first = rank / options.depth * options.num_micro_batches;
    const std::size_t num_ahead = std::min(options.depth - 1 - position, options.num_micro_batches);
    draft.stages[rank] = {stage};
    std::vector<Action>& work = draft.compute[rank];
    for (std::size_t i = 0; i < options.num_micro_batches + num_ahead; ++i) {
      if (i < options.num_micro_batches) add_forward(layers, stage, MicroBatchId::at(first + i), work);
      if (i < num_ahead) continue;
      add_backward(layers, draft.problem, stage, MicroBatchId::at(first + i - num_ahead), work);
    }
  }
  return complete_step(std::move(draft));
}

}  // namespace plenum::schedule
