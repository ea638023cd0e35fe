#include "tests/schedule/random_execution.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "plenum/schedule/core/action_text.h"

namespace plenum::schedule {

RandomExecution::RandomExecution(const Dataflow& dataflow, const std::vector<RankSlots>& slots,
                                 std::uint64_t seed)
    : dataflow_(dataflow),
      slots_(slots),
      random_(seed),
      lanes_(dataflow.schedule().ranks.size()),
      made_(lanes_.size()),
      num_taken_(lanes_.size()),
      most_taken_(lanes_.size()) {
  const Schedule& schedule = dataflow.schedule();
  std::vector<TenantUse> uses;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    uses_.emplace_back(dataflow, Rank::at(rank));
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      lanes_[rank][lane].eagerness = std::uniform_real_distribution<double>(0, 1)(random_);
      const LaneProgram& program = schedule.ranks[rank].lanes[lane];
      for (std::size_t step = 0; step < schedule.num_steps(); ++step) {
        for (const Action& action : program.step(step)) {
          uses_.back().of(action, uses);
          const std::size_t of_step =
              (step + kMaxAge * schedule.num_steps() - action.age) % schedule.num_steps();
          for (const auto& [t, is_written] : uses) {
            if (!is_written) ++num_readers_[{rank, t.kind, t.stage, t.micro_batch, t.layer, of_step}];
          }
        }
      }
    }
  }
}

const Action* RandomExecution::action_at(const Place& place) const {
  const LaneProgram& program = dataflow_.schedule().ranks[place.rank.index()].lanes[place.lane];
  const LaneState& state = lanes_[place.rank.index()][place.lane];
  if (state.step == num_steps_) return nullptr;
  return &program.step(state.step % program.num_steps())[state.position];
}

/// Where nobody passes before all have come.
bool RandomExecution::meets_all(const Action& action) {
  return action.type == ActionType::ReduceGradient || action.type == ActionType::ReduceTied ||
         action.type == ActionType::ReduceTiedOutput || action.type == ActionType::ReduceCurvature ||
         action.type == ActionType::ReduceTensorNorms || action.type == ActionType::Agree;
}

bool RandomExecution::can_begin(const Place& place) {
  LaneState& lane = lanes_[place.rank.index()][place.lane];
  const std::vector<bool>& made = made_[place.rank.index()];
  while (!lane.missing.empty()) {
    const ValueRef& value = lane.missing.back();
    if (lane.step >= value.age && !made[value.index * num_steps_ + lane.step - value.age]) return false;
    lane.missing.pop_back();
  }
  return true;
}

bool RandomExecution::can_end(const Place& place, const Action& action) const {
  const std::size_t step = lanes_[place.rank.index()][place.lane].step;
  if (is_skipped(action, step)) return true;
  if (is_receive(action.type)) {
    const Action send = dataflow_.counterpart(action);
    return sent_.contains({dataflow_.peer(action).index(), send.type, send.stage, send.micro_batch, step});
  }
  if (!meets_all(action)) return true;
  std::vector<ValueRef> values;
  dataflow_.outputs(dataflow_.group(action).front(), action, values);
  const auto present = present_.find({dataflow_.group(action).front().index(), values.front().index, step});
  return present != present_.end() && present->second == dataflow_.group(action).size();
}

bool RandomExecution::can_move(const Place& place) {
  const Action* action = action_at(place);
  if (action == nullptr) return false;
  return lanes_[place.rank.index()][place.lane].state == State::Waits ? can_begin(place)
                                                                      : can_end(place, *action);
}

void RandomExecution::take(Rank rank, const Tenant& tenant, std::size_t step) {
  const std::size_t slot = slots_[rank.index()].slot(tenant, step);
  const std::size_t readers = num_readers_[{rank.index(), tenant.kind, tenant.stage, tenant.micro_batch,
                                            tenant.layer, step % dataflow_.schedule().num_steps()}];
  const auto [place, is_free] =
      taken_.try_emplace({rank.index(), tenant.kind, slot}, Taken{tenant, step, readers});
  if (!is_free) {
    const Taken& old = place->second;
    if (old.tenant == tenant && old.step == step) return;
    if (conflict_.empty()) {
      conflict_ = fmt::format(
          "rank {}, kind {}: slot {} is needed for stage {}, micro-batch {}, step {} before micro-batch {} "
          "of "
          "step {} has given it back",
          rank.value, static_cast<int>(tenant.kind), slot, tenant.stage.value, tenant.micro_batch.value, step,
          old.tenant.micro_batch.value, old.step);
    }
    place->second = {tenant, step, readers};
    return;
  }
  const auto kind = static_cast<std::size_t>(tenant.kind);
  most_taken_[rank.index()][kind] =
      std::max(most_taken_[rank.index()][kind], ++num_taken_[rank.index()][kind]);
}

void RandomExecution::give_back(Rank rank, const Tenant& tenant, std::size_t step) {
  const auto place = taken_.find({rank.index(), tenant.kind, slots_[rank.index()].slot(tenant, step)});
  if (place == taken_.end() || !(place->second.tenant == tenant) || place->second.step != step) {
    if (conflict_.empty()) {
      conflict_ = fmt::format("rank {}: micro-batch {} of step {} is read after it was given back",
                              rank.value, tenant.micro_batch.value, step);
    }
    return;
  }
  if (--place->second.num_readers > 0) return;
  taken_.erase(place);
  --num_taken_[rank.index()][static_cast<std::size_t>(tenant.kind)];
}

void RandomExecution::begin(const Place& place, const Action& action) {
  const std::size_t step = lanes_[place.rank.index()][place.lane].step;
  if (is_skipped(action, step)) return;
  std::vector<TenantUse> uses;
  uses_[place.rank.index()].of(action, uses);
  for (const auto& [tenant, is_written] : uses) {
    if (is_written) take(place.rank, tenant, step - action.age);
  }
  if (is_send(action.type)) {
    sent_.insert({place.rank.index(), action.type, action.stage, action.micro_batch, step});
  }
  if (meets_all(action)) {
    std::vector<ValueRef> values;
    dataflow_.outputs(dataflow_.group(action).front(), action, values);
    ++present_[{dataflow_.group(action).front().index(), values.front().index, step}];
  }
}

void RandomExecution::end(const Place& place, const Action& action) {
  const std::size_t step = lanes_[place.rank.index()][place.lane].step;
  std::vector<ValueRef> values;
  dataflow_.outputs(place.rank, action, values);
  for (const ValueRef& value : values) {
    if (step >= value.age) made_[place.rank.index()][value.index * num_steps_ + step - value.age] = true;
  }
  if (is_skipped(action, step) || is_send(action.type)) return;
  if (is_receive(action.type)) {
    // What was sent is read until it has come.
    give_back(dataflow_.peer(action), message_tenant(dataflow_.counterpart(action), dataflow_.layers()),
              step);
  }
  std::vector<TenantUse> uses;
  uses_[place.rank.index()].of(action, uses);
  for (const auto& [tenant, is_written] : uses) {
    if (!is_written) give_back(place.rank, tenant, step - action.age);
  }
}

void RandomExecution::move(const Place& place) {
  LaneState& lane = lanes_[place.rank.index()][place.lane];
  const Action action = *action_at(place);
  if (lane.state == State::Waits) {
    begin(place, action);
    lane.state = State::Runs;
    if (!is_send(action.type)) return;
  }
  end(place, action);
  lane.state = State::Waits;
  ++lane.position;
  move_on(place);
}

void RandomExecution::move_on(const Place& place) {
  LaneState& lane = lanes_[place.rank.index()][place.lane];
  const LaneProgram& program = dataflow_.schedule().ranks[place.rank.index()].lanes[place.lane];
  while (lane.step < num_steps_ && lane.position == program.step(lane.step % program.num_steps()).size()) {
    ++lane.step;
    lane.position = 0;
  }
  if (const Action* next = action_at(place)) dataflow_.inputs(place.rank, *next, lane.missing);
}

std::string RandomExecution::run(std::size_t num_steps) {
  num_steps_ = num_steps;
  for (std::size_t rank = 0; rank < lanes_.size(); ++rank) {
    made_[rank].assign(dataflow_.num_values(Rank::at(rank)) * num_steps, false);
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) move_on({Rank::at(rank), lane});
  }
  std::vector<Place> movable;
  while (conflict_.empty()) {
    movable.clear();
    for (std::size_t rank = 0; rank < lanes_.size(); ++rank) {
      for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
        const Place place{Rank::at(rank), lane};
        if (can_move(place)) movable.push_back(place);
      }
    }
    if (movable.empty()) break;
    // Mostly the most eager: so that some run ahead as far as they can.
    const bool is_eager = random_() % 8 != 0;
    const auto chosen = is_eager ? std::max_element(movable.begin(), movable.end(),
                                                    [&](const Place& a, const Place& b) {
                                                      return lanes_[a.rank.index()][a.lane].eagerness <
                                                             lanes_[b.rank.index()][b.lane].eagerness;
                                                    })
                                 : movable.begin() + static_cast<std::ptrdiff_t>(random_() % movable.size());
    move(*chosen);
  }
  if (!conflict_.empty()) return conflict_;
  for (std::size_t rank = 0; rank < lanes_.size(); ++rank) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      if (action_at({Rank::at(rank), lane}) != nullptr) return "does not run to its end";
    }
  }
  return {};
}

}  // namespace plenum::schedule
