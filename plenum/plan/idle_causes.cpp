#include "plenum/plan/idle_causes.h"

#include <limits>

#include "plenum/base/check.h"

namespace plenum::plan {

using schedule::Action;
using schedule::ActionTime;
using schedule::Lane;
using schedule::LaneProgram;
using schedule::Rank;
using schedule::ValueRef;

IdleCauses::IdleCauses(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow,
                       const schedule::ReplayResult& replay)
    : schedule_(schedule),
      dataflow_(dataflow),
      replay_(replay),
      num_steps_(static_cast<std::int64_t>(schedule.num_steps())),
      makers_(schedule.ranks.size()) {
  base::check(replay.blocked.empty(), "causes need a replay that ran to its end");
}

const LaneProgram& IdleCauses::program(const ReplayedAction& place) const {
  return schedule_.ranks[place.rank.index()].lane(place.lane);
}

const Action& IdleCauses::action(const ReplayedAction& place) const {
  return program(place).actions()[place.position];
}

ActionTime IdleCauses::time(const ReplayedAction& place) const {
  const ActionTime time =
      replay_.times[place.rank.index()][static_cast<std::size_t>(place.lane)][place.position];
  const double shift = static_cast<double>(place.cycle) * period();
  return {time.start + shift, time.end + shift};
}

std::int64_t IdleCauses::step_of(const ReplayedAction& place) const {
  return static_cast<std::int64_t>(program(place).step_of(place.position)) + place.cycle * num_steps_;
}

const std::vector<IdleCauses::Maker>& IdleCauses::makers_of(Rank rank) {
  std::vector<Maker>& makers = makers_[rank.index()];
  if (!makers.empty()) return makers;
  makers.resize(dataflow_.num_values(rank) * static_cast<std::size_t>(num_steps_) + 1);
  std::vector<ValueRef> made;
  for (std::size_t lane = 0; lane < schedule::kNumLanes; ++lane) {
    const LaneProgram& program = schedule_.ranks[rank.index()].lanes[lane];
    for (std::size_t step = 0; step < program.num_steps(); ++step) {
      auto position = static_cast<std::uint32_t>(program.step_begin(step));
      for (const Action& action : program.step(step)) {
        dataflow_.outputs(rank, action, made);
        for (const ValueRef& value : made) {
          const std::int64_t of_step = static_cast<std::int64_t>(step) - value.age;
          const std::int64_t in_cycle = (of_step % num_steps_ + num_steps_) % num_steps_;
          makers[static_cast<std::size_t>(value.index * num_steps_ + in_cycle)] = {
              position, static_cast<Lane>(lane), static_cast<std::int32_t>(of_step), true};
        }
        ++position;
      }
    }
  }
  return makers;
}

std::optional<ReplayedAction> IdleCauses::maker(Rank rank, std::uint32_t value, std::int64_t step) {
  const std::int64_t in_cycle = (step % num_steps_ + num_steps_) % num_steps_;
  const Maker& found = makers_of(rank)[static_cast<std::size_t>(value * num_steps_ + in_cycle)];
  if (!found.is_known) return std::nullopt;
  return ReplayedAction{rank, found.lane, found.position, (step - found.step) / num_steps_};
}

std::optional<ReplayedAction> IdleCauses::last_need(const ReplayedAction& place) {
  std::optional<ReplayedAction> last;
  double end = -std::numeric_limits<double>::infinity();
  const auto consider = [&](const ReplayedAction& need) {
    const double need_end = time(need).end;
    if (need_end <= end) return;
    end = need_end;
    last = need;
  };
  ReplayedAction before = place;
  if (place.position > 0) {
    --before.position;
  } else {
    before.position = program(place).actions().size() - 1;
    --before.cycle;
  }
  consider(before);
  std::vector<ValueRef> values;
  dataflow_.inputs(place.rank, action(place), values);
  const std::int64_t step = step_of(place);
  for (const ValueRef& value : values) {
    if (const auto found = maker(place.rank, value.index, step - value.age)) consider(*found);
  }
  return last;
}

double IdleCauses::ready(const ReplayedAction& place) {
  const std::optional<ReplayedAction> need = last_need(place);
  return need ? time(*need).end : -std::numeric_limits<double>::infinity();
}

std::optional<ReplayedAction> IdleCauses::part_of(Rank rank, const ReplayedAction& collective) {
  std::vector<ValueRef> values;
  dataflow_.outputs(rank, action(collective), values);
  if (values.empty()) return std::nullopt;
  return maker(rank, values.front().index, step_of(collective) - values.front().age);
}

Rank IdleCauses::last_to_come(const ReplayedAction& collective) {
  const Action& a = action(collective);
  const Meeting meeting{static_cast<int>(a.type),
                        a.stage.value,
                        a.first_layer.value,
                        a.end_layer.value,
                        a.micro_batch.value,
                        a.factor,
                        a.age,
                        program(collective).step_of(collective.position)};
  const auto [place, is_new] = last_to_come_.try_emplace(meeting, collective.rank);
  if (!is_new) return place->second;
  double latest = -std::numeric_limits<double>::infinity();
  for (const Rank member : dataflow_.group(a)) {
    const std::optional<ReplayedAction> part = part_of(member, collective);
    if (!part) continue;
    const double member_ready = ready(*part);
    if (member_ready <= latest) continue;
    latest = member_ready;
    place->second = member;
  }
  return place->second;
}

}  // namespace plenum::plan
