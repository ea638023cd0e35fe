#include "plenum/schedule/generate/gpipe.h"

#include "plenum/schedule/generate/generator_options.h"

namespace plenum::schedule {

Schedule generate_gpipe(const GeneratorOptions& options) {
  StepDraft draft = begin_draft("gpipe", options, options.depth);
  const StageLayers layers(draft.problem);
  for (std::size_t rank = 0; rank < draft.compute.size(); ++rank) {
    const StageId stage = StageId::at(rank % options.depth);
    const std::size_t first = rank / options.depth * options.num_micro_batches;
    draft.stages[rank] = {stage};
    std::vector<Action>& work = draft.compute[rank];
    for (std::size_t i = 0; i < options.num_micro_batches; ++i) {
      add_forward(layers, stage, MicroBatchId::at(first + i), work);
    }
    for (std::size_t i = 0; i < options.num_micro_batches; ++i) {
      add_backward(layers, draft.problem, stage, MicroBatchId::at(first + i), work);
    }
  }
  return complete_step(std::move(draft));
}

}  // namespace plenum::schedule
