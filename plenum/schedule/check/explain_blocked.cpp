#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "plenum/schedule/check/check_rules.h"
#include "plenum/schedule/core/action_text.h"

namespace plenum::schedule {
namespace {

/// What the head of a lane waits for: either a reason that is final, or the head of another lane.
struct Wait {
  std::string need;    ///< "needs the input of stage 1 for micro-batch 0"
  std::string final;   ///< why it never comes; empty if it waits for `on`
  std::size_t on = 0;  ///< index of a blocked lane
};

/// Follows who waits for whom among the lanes in which a replay came to a stop.
class WaitGraph {
 public:
  WaitGraph(RuleContext& context, const std::vector<BlockedAction>& blocked)
      : context_(context), blocked_(blocked) {
    for (std::size_t i = 0; i < blocked.size(); ++i) waits_.push_back(wait_of(i));
  }

  /// Adds the first action whose wait is final, or the first of those that wait for each other.
  void explain() {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < blocked_.size(); ++i) {
      if (!waits_[i].final.empty() && (!first || comes_before(i, *first))) first = i;
    }
    if (first) {
      context_.add(place_of(*first), fmt::format("{}, {}", waits_[*first].need, waits_[*first].final));
      return;
    }
    find_reordered_messages(context_);
    if (context_.findings.empty()) explain_circle();
    const std::string accepted = accepted_message_order(context_);
    if (accepted.empty()) return;
    for (Finding& finding : context_.findings) finding.why += "; accepted is " + accepted;
  }

 private:
  const LaneProgram& program(std::size_t index) const {
    return context_.schedule.ranks[blocked_[index].rank.index()].lane(blocked_[index].lane);
  }
  const Action& action(std::size_t index) const { return program(index).actions()[blocked_[index].position]; }
  ActionPlace place_of(std::size_t index) const {
    const BlockedAction& head = blocked_[index];
    return {head.step % context_.schedule.num_steps(), head.rank, head.lane, head.position};
  }
  bool comes_before(std::size_t a, std::size_t b) const {
    const auto key = [this](std::size_t i) {
      const BlockedAction& head = blocked_[i];
      return std::tuple(head.step, head.position - program(i).step_begin(place_of(i).step), head.rank);
    };
    return key(a) < key(b);
  }
  std::optional<std::size_t> head_of(Rank rank, Lane lane) const {
    const auto found = std::lower_bound(
        blocked_.begin(), blocked_.end(), std::pair(rank, lane),
        [](const BlockedAction& head, const auto& key) { return std::pair(head.rank, head.lane) < key; });
    if (found == blocked_.end() || found->rank != rank || found->lane != lane) return std::nullopt;
    return static_cast<std::size_t>(found - blocked_.begin());
  }

  Wait wait_of(std::size_t index) const {
    const BlockedAction& head = blocked_[index];
    if (head.missing) return wait_for_value(index, *head.missing);
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      const std::optional<std::size_t> other = head_of(head.rank, static_cast<Lane>(lane));
      if (other && blocked_[*other].step + 1 < head.step) {
        return {fmt::format("needs step {} to end", blocked_[*other].step % context_.schedule.num_steps()),
                {},
                *other};
      }
    }
    if (traits_of(action(index).type).is_collective) return wait_for_group(index);
    return wait_for_message(index);
  }

  /// What it needs may be hopeless in several ways: best is the one that needs no other rank to explain.
  Wait wait_for_value(std::size_t index, const ValueRef& missing) const {
    const BlockedAction& head = blocked_[index];
    std::vector<ValueRef> values;
    context_.dataflow.inputs(head.rank, action(index), values);
    std::erase_if(values, [&head](const ValueRef& value) { return value.age > head.step; });
    const std::vector<std::optional<Maker>> makers =
        find_makers(context_, head.rank, place_of(index).step, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!makers[i]) {
        return {describe_need(index, values[i]), context_.schedule.num_steps() == 1
                                                     ? "which nothing makes"
                                                     : "which nothing makes in that step"};
      }
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (comes_later_in_lane(index, values[i], *makers[i])) {
        return {describe_need(index, values[i]), fmt::format("which {} makes only later in the same lane",
                                                             describe_action(context_, makers[i]->place))};
      }
    }
    const auto at =
        static_cast<std::size_t>(std::find(values.begin(), values.end(), missing) - values.begin());
    const std::string maker = describe_action(context_, makers[at]->place);
    const std::optional<std::size_t> other = head_of(head.rank, makers[at]->place.lane);
    if (!other) {
      return {describe_need(index, missing),
              fmt::format("which {} makes too late, in step {}", maker, makers[at]->place.step)};
    }
    return {fmt::format("{}, made by {}", describe_need(index, missing), maker), {}, *other};
  }

  std::string describe_need(std::size_t index, const ValueRef& value) const {
    std::string need = "needs " + context_.dataflow.describe(blocked_[index].rank, value.index);
    if (value.age == 1) need += " of the step before";
    if (value.age > 1) need += fmt::format(" of {} steps before", value.age);
    return need;
  }

  bool comes_later_in_lane(std::size_t index, const ValueRef& value, const Maker& maker) const {
    const BlockedAction& head = blocked_[index];
    const std::size_t step = head.step - value.age + maker.age;
    return maker.place.lane == head.lane &&
           (step > head.step || (step == head.step && maker.place.position >= head.position));
  }

  Wait wait_for_message(std::size_t index) const {
    const Rank peer = context_.dataflow.peer(action(index));
    const Action other_end = context_.dataflow.counterpart(action(index));
    Wait wait{.need = fmt::format("needs {} on rank {}", action_text(other_end, context_.dataflow.layers()),
                                  peer.value),
              .final = {}};
    const std::optional<std::size_t> other = head_of(peer, Lane::Pipeline);
    if (other) {
      wait.on = *other;
    } else {
      wait.final = "which is not there";
    }
    return wait;
  }

  Wait wait_for_group(std::size_t index) const {
    const BlockedAction& head = blocked_[index];
    for (const Rank member : context_.dataflow.group(action(index))) {
      const std::optional<std::size_t> other = head_of(member, head.lane);
      if (member == head.rank || !other) continue;
      const bool is_present =
          action(*other) == action(index) && blocked_[*other].step == head.step && !blocked_[*other].missing;
      if (!is_present) return {fmt::format("needs rank {} to take part", member.value), {}, *other};
    }
    return {"needs all ranks of its group", "which do not come", 0};
  }

  void explain_circle() {
    std::size_t at = 0;
    for (std::size_t i = 0; i < blocked_.size(); ++i) {
      if (comes_before(i, at)) at = i;
    }
    for (std::size_t i = 0; i < blocked_.size(); ++i) at = waits_[at].on;  // now inside the circle
    std::size_t first = at;
    std::size_t length = 1;
    for (std::size_t i = waits_[at].on; i != at; i = waits_[i].on) {
      if (comes_before(i, first)) first = i;
      ++length;
    }
    const std::string other = describe_action(context_, place_of(waits_[first].on));
    const std::string through = length > 2 ? fmt::format(" through {} more", length - 2) : "";
    context_.add(place_of(first), fmt::format("{}, which comes after {}, which waits for this in turn{}",
                                              waits_[first].need, other, through));
  }

  RuleContext& context_;
  const std::vector<BlockedAction>& blocked_;
  std::vector<Wait> waits_;
};

}  // namespace

void explain_blocked(RuleContext& context, const std::vector<BlockedAction>& blocked) {
  if (!blocked.empty()) WaitGraph(context, blocked).explain();
}

}  // namespace plenum::schedule
