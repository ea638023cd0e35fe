#include "plenum/schedule/generate/generator_options.h"

#include <limits>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

/// What computes gradients of a stage. Where the problem recomputes, it goes layer by layer, from the last to
/// the first, each after its recomputation: so no more than one layer is recomputed at a time.
void add_gradient(ActionType type, const StageLayers& layers, const Problem& problem, StageId stage,
                  MicroBatchId micro_batch, std::vector<Action>& work) {
  const Action whole = layers.whole(type, stage, micro_batch);
  if (problem.recomputation == Recomputation::None) return work.push_back(whole);
  for (std::size_t end = whole.end_layer.index(); end > whole.first_layer.index(); --end) {
    Action part = whole;
    part.first_layer = LayerId::at(end - 1);
    part.end_layer = LayerId::at(end);
    part.type = ActionType::Recompute;
    work.push_back(part);
    part.type = type;
    work.push_back(part);
  }
}

}  // namespace

StepDraft begin_draft(std::string name, const GeneratorOptions& options, std::size_t num_stages) {
  base::require(options.depth > 0, "a pipeline needs at least one stage");
  base::require(options.num_micro_batches > 0, "a step needs at least one micro-batch");
  base::require(options.num_replicas > 0, "there must be at least one replica");
  base::require(!options.stage_layers.empty(), "say how many layers a stage has");
  base::require(options.stage_layers.size() == 1 || options.stage_layers.size() == num_stages,
                "there must be a number of layers for each of the {} stages, or one for all: {} are given",
                num_stages, options.stage_layers.size());
  base::require(options.sharding < Sharding::Gradients || num_stages == 1,
                "gradients and parameters are sharded where every rank computes the whole model; {} stages "
                "are asked for",
                num_stages);
  const std::size_t num_micro_batches = options.num_micro_batches * options.num_replicas;
  base::require(num_micro_batches < std::numeric_limits<std::uint32_t>::max(), "too many micro-batches: {}",
                num_micro_batches);
  StepDraft draft{.name = std::move(name),
                  .problem = {.stage_layers = options.stage_layers,
                              .num_micro_batches = static_cast<std::uint32_t>(num_micro_batches),
                              .micro_batch_sizes = options.micro_batch_sizes,
                              .recomputation = options.recomputation,
                              .sharding = options.sharding,
                              .has_tied_parameters = options.has_tied_parameters,
                              .has_tied_halves = options.has_tied_halves,
                              .has_tensor_norms = options.has_tensor_norms},
                  .num_buckets = options.num_buckets,
                  .stages = {},
                  .compute = {}};
  if (options.stage_layers.size() == 1)
    draft.problem.stage_layers.resize(num_stages, options.stage_layers.front());
  require_well_formed(draft.problem);
  draft.stages.resize(options.depth * options.num_replicas);
  draft.compute.resize(options.depth * options.num_replicas);
  return draft;
}

void add_forward(const StageLayers& layers, StageId stage, MicroBatchId micro_batch,
                 std::vector<Action>& work) {
  work.push_back(layers.whole(ActionType::Forward, stage, micro_batch));
}

void add_backward(const StageLayers& layers, const Problem& problem, StageId stage, MicroBatchId micro_batch,
                  std::vector<Action>& work) {
  add_gradient(ActionType::Backward, layers, problem, stage, micro_batch, work);
}

void add_input_gradient(const StageLayers& layers, const Problem& problem, StageId stage,
                        MicroBatchId micro_batch, std::vector<Action>& work) {
  add_gradient(ActionType::InputGradient, layers, problem, stage, micro_batch, work);
}

void add_weight_gradient(const StageLayers& layers, StageId stage, MicroBatchId micro_batch,
                         std::vector<Action>& work) {
  work.push_back(layers.whole(ActionType::WeightGradient, stage, micro_batch));
}

}  // namespace plenum::schedule
