#include <fmt/format.h>

#include "plenum/schedule/action_text.h"
#include "plenum/schedule/check_rules.h"

namespace plenum::schedule {
namespace {

const LaneProgram& lane_of(const RuleContext& context, const Place& place) {
  return context.schedule.ranks[place.rank.index()].lane(place.lane);
}

std::string describe_at(const RuleContext& context, const Place& place) {
  const LaneProgram& lane = lane_of(context, place);
  if (place.position >= lane.step_begin(place.step) + lane.step(place.step).size()) return "end of the step";
  return action_text(lane.actions()[place.position], context.dataflow.layers());
}

}  // namespace

std::size_t data_step(std::size_t step, std::size_t age, std::size_t num_steps) {
  return (step + num_steps - age % num_steps) % num_steps;
}

std::optional<Place> find_maker(const RuleContext& context, Rank rank, std::uint32_t value_index,
                                std::size_t value_step) {
  const std::size_t num_steps = context.schedule.num_steps();
  std::vector<ValueRef> values;
  for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
    const LaneProgram& program = context.schedule.ranks[rank.index()].lanes[lane];
    for (std::size_t step = 0; step < num_steps; ++step) {
      Place place{step, rank, static_cast<Lane>(lane), program.step_begin(step)};
      for (const Action& action : program.step(step)) {
        context.dataflow.outputs(rank, action, values);
        for (const ValueRef& value : values) {
          if (value.index == value_index && data_step(step, value.age, num_steps) == value_step) return place;
        }
        ++place.position;
      }
    }
  }
  return std::nullopt;
}

std::string describe_place(const RuleContext& context, const Place& place) {
  return fmt::format("rank {}, {}, step {}, {}", place.rank.value, lane_name(place.lane), place.step,
                     describe_at(context, place));
}

std::string describe_action(const RuleContext& context, const Place& place) {
  return fmt::format("{} on rank {}", describe_at(context, place), place.rank.value);
}

}  // namespace plenum::schedule
