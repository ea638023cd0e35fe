#include <fmt/format.h>

#include "plenum/schedule/check_rules.h"

namespace plenum::schedule {
namespace {

Place end_of_step(const Schedule& schedule, Rank rank, std::size_t step) {
  const LaneProgram& compute = schedule.ranks[rank.index()].lane(Lane::Compute);
  return {step, rank, Lane::Compute, compute.step_begin(step) + compute.step(step).size()};
}

void find_idle_micro_batches(RuleContext& context) {
  for (std::size_t stage = 0; stage < context.schedule.num_stages(); ++stage) {
    for (std::size_t m = 0; m < context.schedule.problem.num_micro_batches && !context.is_full(); ++m) {
      if (!context.dataflow.runner(StageId::at(stage), MicroBatchId::at(m)).is_none()) continue;
      context.add(end_of_step(context.schedule, context.dataflow.holders(StageId::at(stage)).front(), 0),
                  fmt::format("no rank runs the forward of stage {} for micro-batch {}", stage, m));
    }
  }
}

/// That no layer is updated twice is for find_duplicates().
void find_missing_updates(RuleContext& context) {
  const Schedule& schedule = context.schedule;
  const StageLayers& layers = context.dataflow.layers();
  std::vector<bool> is_updated;
  for (std::size_t step = 0; step < schedule.num_steps(); ++step) {
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      is_updated.assign(layers.total(), false);
      for (const Action& action : schedule.ranks[rank].lane(Lane::Compute).step(step)) {
        if (action.type != ActionType::Update) continue;
        for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
          is_updated[layer] = true;
        }
      }
      for (const StageId stage : schedule.ranks[rank].stages) {
        for (std::size_t layer = layers.first(stage).index(); layer < layers.end(stage).index(); ++layer) {
          if (is_updated[layer]) continue;
          context.add(end_of_step(schedule, Rank::at(rank), step),
                      fmt::format("layer {} of stage {} is not updated", layer, stage.value));
          break;
        }
      }
    }
  }
}

}  // namespace

void find_omissions(RuleContext& context) {
  find_idle_micro_batches(context);
  find_missing_updates(context);
}

}  // namespace plenum::schedule
