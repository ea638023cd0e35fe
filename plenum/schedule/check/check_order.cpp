#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "plenum/schedule/check/check_rules.h"
#include "plenum/schedule/core/action_text.h"
#include "plenum/schedule/simulate/message_order.h"

namespace plenum::schedule {
namespace {

/// From whom to whom.
using Pair = std::pair<Rank, Rank>;

/// The sends of a step, in the order of each pair's messages.
std::map<Pair, std::vector<Action>> sends_of(const RuleContext& context, std::size_t step) {
  std::map<Pair, std::vector<Action>> sends;
  for (std::size_t rank = 0; rank < context.schedule.ranks.size(); ++rank) {
    for (const Action& action : context.schedule.ranks[rank].lane(Lane::Pipeline).step(step)) {
      if (is_send(action.type)) sends[{Rank::at(rank), context.dataflow.peer(action)}].push_back(action);
    }
  }
  return sends;
}

/// A lane in one step, from the first action on in which it differs from another order.
std::string accepted_text(std::span<const Action> accepted, std::span<const Action> own,
                          const StageLayers& layers) {
  constexpr std::size_t kMostShown = 12;
  const auto first = static_cast<std::size_t>(
      std::mismatch(accepted.begin(), accepted.end(), own.begin(), own.end()).first - accepted.begin());
  const std::size_t end = std::min(first + kMostShown, accepted.size());
  std::string text = first > 0 ? "… " : "";
  for (std::size_t i = first; i < end; ++i) {
    text += fmt::format("{}{}", i > first ? " " : "", action_text(accepted[i], layers));
  }
  return end < accepted.size() ? text + " …" : text;
}

}  // namespace

void find_reordered_messages(RuleContext& context) {
  for (std::size_t step = 0; step < context.schedule.num_steps() && !context.is_full(); ++step) {
    const std::map<Pair, std::vector<Action>> sends = sends_of(context, step);
    std::map<Pair, std::size_t> num_received;
    for (std::size_t rank = 0; rank < context.schedule.ranks.size(); ++rank) {
      bool is_told = false;
      for_each_action_of(
          context.schedule, Rank::at(rank), Lane::Pipeline, step,
          [&](const ActionPlace& place, const Action& action) {
            if (is_told || !is_receive(action.type)) return;
            const Rank from = context.dataflow.peer(action);
            const Action& next = sends.at({from, place.rank})[num_received[{from, place.rank}]++];
            if (next == context.dataflow.counterpart(action)) return;
            is_told = true;
            context.add(place, fmt::format("the next message from rank {} is {}: they come in the order in "
                                           "which they are sent",
                                           from.value, action_text(next, context.dataflow.layers())));
          });
    }
  }
}

std::string accepted_message_order(const RuleContext& context) {
  Schedule ordered = context.schedule;
  if (!order_messages(ordered)) return {};
  std::string first_lane;
  std::size_t num_lanes = 0;
  for (std::size_t rank = 0; rank < ordered.ranks.size(); ++rank) {
    const LaneProgram& accepted = ordered.ranks[rank].lane(Lane::Pipeline);
    const LaneProgram& own = context.schedule.ranks[rank].lane(Lane::Pipeline);
    if (accepted == own) continue;
    ++num_lanes;
    if (!first_lane.empty()) continue;
    for (std::size_t step = 0; first_lane.empty(); ++step) {
      if (std::equal(accepted.step(step).begin(), accepted.step(step).end(), own.step(step).begin()))
        continue;
      first_lane = fmt::format("rank {}, pipe, step {}: {}", rank, step,
                               accepted_text(accepted.step(step), own.step(step), context.dataflow.layers()));
    }
  }
  if (num_lanes > 1) first_lane += fmt::format(" (first of {} lanes)", num_lanes);
  return first_lane;
}

}  // namespace plenum::schedule
