#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "plenum/schedule/check/check_rules.h"
#include "plenum/schedule/core/curvature_coverage.h"

namespace plenum::schedule {
namespace {

ActionPlace end_of_step(const Schedule& schedule, Rank rank, std::size_t step, Lane lane = Lane::Compute) {
  return {step, rank, lane, schedule.ranks[rank.index()].lane(lane).step_end(step)};
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

/// The first layer that a rank holds and does not update in a step; none if it updates all. That none is
/// updated twice is for find_duplicates().
LayerId layer_without_update(const RuleContext& context, std::size_t rank, std::size_t step) {
  const StageLayers& layers = context.dataflow.layers();
  std::vector<std::pair<LayerId, LayerId>> updated;
  for (const Action& action : context.schedule.ranks[rank].lane(Lane::Compute).step(step)) {
    if (action.type == ActionType::Update) updated.emplace_back(action.first_layer, action.end_layer);
  }
  std::sort(updated.begin(), updated.end());
  for (const StageId stage : context.schedule.ranks[rank].stages) {
    LayerId layer = layers.first(stage);
    for (const auto& [first, end] : updated) {
      if (first <= layer) layer = std::max(layer, end);
    }
    if (layer < layers.end(stage)) return layer;
  }
  return LayerId::none();
}

void find_missing_updates(RuleContext& context) {
  for (std::size_t step = 0; step < context.schedule.num_steps(); ++step) {
    for (std::size_t rank = 0; rank < context.schedule.ranks.size(); ++rank) {
      const LayerId layer = layer_without_update(context, rank, step);
      if (layer.is_none()) continue;
      context.add(end_of_step(context.schedule, Rank::at(rank), step),
                  fmt::format("layer {} is not updated", layer.value));
    }
  }
}

bool has_agreement(const Schedule& schedule, std::size_t step) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [step](const RankProgram& rank) {
    const std::span<const Action> data = rank.lane(Lane::DataParallel).step(step);
    return std::any_of(data.begin(), data.end(),
                       [](const Action& action) { return action.type == ActionType::Agree; });
  });
}

/// That all ranks take part where one does is for find_incomplete_groups().
void find_missing_agreement(RuleContext& context) {
  for (std::size_t step = 0; step < context.schedule.num_steps(); ++step) {
    if (has_agreement(context.schedule, step)) continue;
    context.add(end_of_step(context.schedule, {}, step, Lane::DataParallel),
                "there is no N: all ranks agree before they update");
  }
}

/// The statistics of one of the maps that a rank inverts which cover no micro-batch; nothing if all cover
/// some.
std::optional<ActionType> missing_curvature(const RuleContext& context, const CurvatureCoverage& coverage,
                                            Rank rank, const Action& inversion) {
  const bool is_of_one_map = inversion.type == ActionType::Invert;
  for (LayerId layer = inversion.first_layer; layer < inversion.end_layer; ++layer.value) {
    for (std::uint16_t map = 0; map < context.schedule.problem.num_factors; ++map) {
      const bool is_inverted = is_of_one_map ? map == inversion.factor
                                             : context.dataflow.owner(inversion.stage, layer, map) == rank;
      if (!is_inverted) continue;
      for (const ActionType side : {ActionType::CurvatureA, ActionType::CurvatureB}) {
        if (coverage.of(side, layer, map).empty()) return side;
      }
    }
  }
  return std::nullopt;
}

/// Where curvature is partial, inverses of which no micro-batch is covered.
void find_missing_curvature(RuleContext& context) {
  if (!context.schedule.problem.has_partial_curvature) return;
  const CurvatureCoverage coverage(context.schedule);
  for_each_action(context.schedule, [&](const ActionPlace& place, const Action& action) {
    if (!is_inversion(action.type)) return;
    const std::optional<ActionType> side = missing_curvature(context, coverage, place.rank, action);
    if (!side) return;
    context.add(place, fmt::format("there is no {} of {}: its statistics must cover a micro-batch",
                                   traits_of(*side).code,
                                   action.type == ActionType::Invert ? "this map" : "one of these maps"));
  });
}

}  // namespace

void find_omissions(RuleContext& context) {
  find_idle_micro_batches(context);
  find_missing_updates(context);
  find_missing_agreement(context);
  find_missing_curvature(context);
}

}  // namespace plenum::schedule
