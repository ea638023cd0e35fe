#include <map>

#include <fmt/format.h>

#include "plenum/schedule/check/check_rules.h"
#include "plenum/schedule/core/action_text.h"

namespace plenum::schedule {
namespace {

const LaneProgram& lane_of(const RuleContext& context, const ActionPlace& place) {
  return context.schedule.ranks[place.rank.index()].lane(place.lane);
}

std::string describe_at(const RuleContext& context, const ActionPlace& place) {
  const LaneProgram& lane = lane_of(context, place);
  if (place.position >= lane.step_begin(place.step) + lane.step(place.step).size()) return "end of the step";
  return action_text(lane.actions()[place.position], context.dataflow.layers());
}

}  // namespace

std::size_t data_step(std::size_t step, std::size_t age, std::size_t num_steps) {
  return (step + num_steps - age % num_steps) % num_steps;
}

std::vector<std::optional<Maker>> find_makers(const RuleContext& context, Rank rank, std::size_t step,
                                              std::span<const ValueRef> values) {
  const std::size_t num_steps = context.schedule.num_steps();
  const auto instance = [num_steps](std::size_t at_step, const ValueRef& value) {
    return std::pair(value.index, data_step(at_step, value.age, num_steps));
  };
  std::multimap<std::pair<std::uint32_t, std::size_t>, std::size_t> wanted;
  for (std::size_t i = 0; i < values.size(); ++i) wanted.emplace(instance(step, values[i]), i);
  std::vector<std::optional<Maker>> makers(values.size());
  std::vector<ValueRef> outputs;
  for_each_action_of(context.schedule, rank, [&](const ActionPlace& place, const Action& action) {
    context.dataflow.outputs(rank, action, outputs);
    for (const ValueRef& output : outputs) {
      const auto [begin, end] = wanted.equal_range(instance(place.step, output));
      for (auto found = begin; found != end; ++found) {
        if (!makers[found->second]) makers[found->second] = {place, output.age};
      }
    }
  });
  return makers;
}

std::string describe_place(const RuleContext& context, const ActionPlace& place) {
  return fmt::format("rank {}, {}, step {}, {}", place.rank.value, lane_name(place.lane), place.step,
                     describe_at(context, place));
}

std::string describe_action(const RuleContext& context, const ActionPlace& place) {
  return fmt::format("{} on rank {}", describe_at(context, place), place.rank.value);
}

}  // namespace plenum::schedule
