#include "plenum/plan/step_breakdown.h"

#include <algorithm>
#include <array>

#include "plenum/plan/idle_causes.h"

namespace plenum::plan {
namespace {

using schedule::Action;
using schedule::ActionType;
using schedule::Lane;
using schedule::Rank;

constexpr std::array kParts = {&StepBreakdown::arithmetic,
                               &StepBreakdown::memory,
                               &StepBreakdown::launch,
                               &StepBreakdown::communication_latency,
                               &StepBreakdown::communication_bandwidth,
                               &StepBreakdown::waiting,
                               &StepBreakdown::bubbles,
                               &StepBreakdown::padding,
                               &StepBreakdown::optimizer};

bool is_of_pass(ActionType type) {
  return type == ActionType::Forward || type == ActionType::Backward || type == ActionType::InputGradient ||
         type == ActionType::WeightGradient || type == ActionType::Recompute;
}

void add(StepBreakdown& sum, const ActionParts& parts, double factor = 1) {
  sum.arithmetic += factor * parts.device.compute;
  sum.memory += factor * parts.device.memory;
  sum.launch += factor * parts.device.launch;
  sum.communication_latency += factor * parts.link.latency;
  sum.communication_bandwidth += factor * parts.link.bandwidth;
}

/// Divides a cycle of one rank.
class RankCycle {
 public:
  RankCycle(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow, const StepCosts& costs,
            IdleCauses& causes, Rank rank)
      : schedule_(schedule), dataflow_(dataflow), costs_(costs), causes_(causes), rank_(rank) {}

  StepBreakdown run() {
    const std::size_t num_actions = schedule_.ranks[rank_.index()].lane(Lane::Compute).actions().size();
    if (num_actions == 0) {
      sum_.bubbles = causes_.period();
      return sum_;
    }
    // The cycle begins where the last computation of the one before ends.
    double free = causes_.time({rank_, Lane::Compute, num_actions - 1, -1}).end;
    for (std::size_t position = 0; position < num_actions; ++position) {
      const ReplayedAction place{rank_, Lane::Compute, position, 0};
      divide_idle(free, place);
      add_computation(place);
      free = causes_.time(place).end;
    }
    return sum_;
  }

 private:
  void add_computation(const ReplayedAction& place) {
    const Action& action = causes_.action(place);
    const ActionParts parts = costs_.parts(rank_, action);
    if (!is_of_pass(action.type)) {
      sum_.optimizer += parts.total();
      return;
    }
    const ActionParts without_padding = costs_.parts_without_padding(rank_, action);
    const double padding = parts.total() - without_padding.total();
    // A size that is computed worse than a larger one gains nothing from having less to do.
    add(sum_, padding > 0 ? without_padding : parts);
    sum_.padding += std::max(0.0, padding);
  }

  /// From `begin` to the start of an action the rank computes nothing.
  void divide_idle(double begin, ReplayedAction place) {
    double time = causes_.time(place).start;
    if (time < begin) {
      // Only where the replay is not in its steady state.
      sum_.waiting += time - begin;
      return;
    }
    while (time > begin) {
      const std::optional<ReplayedAction> need = causes_.last_need(place);
      const double ready = need ? std::clamp(causes_.time(*need).end, begin, time) : begin;
      add_absence(place, time - ready);
      if (ready <= begin) return;
      time = std::clamp(causes_.time(*need).start, begin, ready);
      add_exchange(*need, ready - time);
      place = *need;
    }
  }

  /// The action could begin on this rank, and did not for so long.
  void add_absence(const ReplayedAction& place, double seconds) {
    if (seconds <= 0) return;
    const Action& action = causes_.action(place);
    const bool is_collective = schedule::traits_of(action.type).is_collective;
    const bool is_for_replica =
        is_collective &&
        schedule_.ranks[causes_.last_to_come(place).index()].stages == schedule_.ranks[rank_.index()].stages;
    (is_for_replica ? sum_.waiting : sum_.bubbles) += seconds;
  }

  /// A message or collective runs for so long while the rank computes nothing.
  void add_exchange(const ReplayedAction& place, double seconds) {
    if (seconds <= 0) return;
    const Action& action = causes_.action(place);
    ActionParts parts;
    if (place.lane == Lane::Pipeline) {
      const Rank peer = dataflow_.peer(action);
      const bool sends = schedule::is_send(action.type);
      parts = sends ? costs_.parts(rank_, action) : costs_.parts(peer, dataflow_.counterpart(action));
      parts.link.latency += sends ? costs_.latency_seconds(rank_, peer) : costs_.latency_seconds(peer, rank_);
    } else {
      parts = costs_.parts(rank_, action);
    }
    if (parts.total() > 0) {
      add(sum_, parts, seconds / parts.total());
    } else {
      sum_.bubbles += seconds;
    }
  }

  const schedule::Schedule& schedule_;
  const schedule::Dataflow& dataflow_;
  const StepCosts& costs_;
  IdleCauses& causes_;
  Rank rank_;
  StepBreakdown sum_;
};

}  // namespace

double StepBreakdown::total() const {
  double sum = 0;
  for (const auto part : kParts) sum += this->*part;
  return sum;
}

StepBreakdown& StepBreakdown::operator+=(const StepBreakdown& other) {
  for (const auto part : kParts) this->*part += other.*part;
  return *this;
}

StepBreakdown& StepBreakdown::operator*=(double factor) {
  for (const auto part : kParts) this->*part *= factor;
  return *this;
}

std::vector<StepBreakdown> rank_breakdowns(const schedule::Schedule& schedule, const StepCosts& costs,
                                           const schedule::Simulation& simulation) {
  const schedule::Dataflow dataflow(schedule);
  IdleCauses causes(schedule, dataflow, simulation.replay);
  std::vector<StepBreakdown> breakdowns;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    breakdowns.push_back(RankCycle(schedule, dataflow, costs, causes, Rank::at(rank)).run());
    breakdowns.back() *= 1.0 / static_cast<double>(schedule.num_steps());
  }
  return breakdowns;
}

StepBreakdown step_breakdown(const schedule::Schedule& schedule, const StepCosts& costs,
                             const schedule::Simulation& simulation) {
  StepBreakdown mean;
  for (const StepBreakdown& rank : rank_breakdowns(schedule, costs, simulation)) mean += rank;
  mean *= 1.0 / static_cast<double>(schedule.ranks.size());
  return mean;
}

}  // namespace plenum::plan
