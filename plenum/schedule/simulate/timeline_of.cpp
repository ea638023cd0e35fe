#include "plenum/schedule/simulate/timeline_of.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/schedule/core/action_text.h"

namespace plenum::schedule {
namespace {

constexpr std::uint32_t kNoSpan = std::numeric_limits<std::uint32_t>::max();
constexpr double kNotBegun = std::numeric_limits<double>::infinity();

struct ActionHash {
  std::size_t operator()(const Action& action) const {
    const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(action);
    const std::uint64_t hash = (words[0] ^ words[1] * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 32;
  }
};

class TimelineBuilder {
 public:
  TimelineBuilder(const Schedule& schedule, const std::vector<RankTimes>& times, std::string title,
                  ActionLabels labels)
      : schedule_(schedule),
        times_(times),
        labels_(labels),
        dataflow_(schedule),
        sends_(schedule.num_steps() * 2 * schedule.num_stages() * schedule.problem.num_micro_batches,
               kNoSpan) {
    base::check(times.size() == schedule.ranks.size(), "times must be of this schedule: ranks={} times={}",
                schedule.ranks.size(), times.size());
    timeline_.title = std::move(title);
    timeline_.step_begin_seconds.assign(schedule.num_steps(), kNotBegun);
    timeline_.spans.reserve(schedule.num_actions());
    label_indices_.reserve(schedule.num_actions() / std::max<std::size_t>(1, schedule.num_steps()));
  }

  trace::Timeline build() {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      for (std::size_t lane = 0; lane < kNumLanes; ++lane) add_lane(Rank::at(rank), static_cast<Lane>(lane));
    }
    for (const auto& [receive, send] : receives_) {
      if (sends_[send] != kNoSpan) timeline_.flows.push_back({sends_[send], receive});
    }
    if (labels_ == ActionLabels::Words) std::swap(timeline_.labels, timeline_.explanations);
    find_bounds();
    return std::move(timeline_);
  }

 private:
  void add_lane(Rank rank, Lane lane) {
    const LaneProgram& program = schedule_.ranks[rank.index()].lane(lane);
    const LaneTimes& times = times_[rank.index()][static_cast<std::size_t>(lane)];
    base::check(times.size() == program.actions().size(),
                "times must be of this schedule: rank={} actions={} times={}", rank.value,
                program.actions().size(), times.size());
    if (times.empty()) return;
    const auto add_all = [&](std::string_view name, const auto& is_wanted) {
      if (!std::any_of(program.actions().begin(), program.actions().end(), is_wanted)) return;
      timeline_.tracks.push_back({rank.value, std::string(name)});
      for (std::size_t position = 0; position < times.size(); ++position) {
        const Action& action = program.actions()[position];
        if (is_wanted(action)) add_span(action, program.step_of(position), times[position]);
      }
    };
    if (lane == Lane::Pipeline) {
      // Where the engine has buffers, what was measured receives while it sends.
      add_all("pipe out", [](const Action& action) { return is_send(action.type); });
      add_all("pipe in", [](const Action& action) { return !is_send(action.type); });
      return;
    }
    add_all(lane_name(lane), [](const Action&) { return true; });
    if (lane == Lane::Compute) note_step_begins(program, times);
  }

  void note_step_begins(const LaneProgram& program, const LaneTimes& times) {
    for (std::size_t step = 0; step < program.num_steps(); ++step) {
      if (program.step(step).empty()) continue;
      double& begin = timeline_.step_begin_seconds[step];
      begin = std::min(begin, times[program.step_begin(step)].start);
    }
  }

  void add_span(const Action& action, std::size_t step, const ActionTime& time) {
    const auto index = static_cast<std::uint32_t>(timeline_.spans.size());
    if (is_send(action.type)) sends_[message_index(action, step)] = index;
    if (is_receive(action.type)) {
      receives_.emplace_back(index, message_index(dataflow_.counterpart(action), step));
    }
    const ActionTraits& traits = traits_of(action.type);
    timeline_.spans.push_back({.start_seconds = time.start,
                               .end_seconds = time.end,
                               .track = static_cast<std::uint32_t>(timeline_.tracks.size() - 1),
                               .label = label_index(action),
                               .category = category_of(action.type),
                               .stage = traits.has_stage ? action.stage.value : trace::kNoStage,
                               .micro_batch = traits.has_micro_batch && !counts_rounds(action.type)
                                                  ? static_cast<std::int32_t>(action.micro_batch.value)
                                                  : -1,
                               .step = static_cast<std::uint32_t>(step)});
  }

  std::uint32_t label_index(const Action& action) {
    const auto next = static_cast<std::uint32_t>(timeline_.labels.size());
    const auto [found, is_new] = label_indices_.emplace(action, next);
    if (is_new) {
      timeline_.labels.push_back(action_text(action, dataflow_.layers()));
      timeline_.explanations.push_back(action_words(action, dataflow_.layers()));
    }
    return found->second;
  }

  /// A number of its own for every message of the cycle.
  std::size_t message_index(const Action& send, std::size_t step) const {
    const std::size_t direction = send.type == ActionType::SendActivation ? 0 : 1;
    return ((step * 2 + direction) * schedule_.num_stages() + send.stage.index()) *
               schedule_.problem.num_micro_batches +
           send.micro_batch.index();
  }

  /// Only computations say when a step begins: other lanes may run ahead (data for the next step).
  void find_bounds() {
    double first = kNotBegun;
    double last = -kNotBegun;
    for (const trace::Span& span : timeline_.spans) {
      first = std::min(first, span.start_seconds);
      last = std::max(last, span.end_seconds);
    }
    if (timeline_.spans.empty()) first = last = 0;
    for (double& begin : timeline_.step_begin_seconds) {
      if (begin == kNotBegun) begin = first;
      first = begin;
    }
    timeline_.begin_seconds =
        timeline_.step_begin_seconds.empty() ? first : timeline_.step_begin_seconds.front();
    timeline_.end_seconds = last;
  }

  const Schedule& schedule_;
  const std::vector<RankTimes>& times_;
  ActionLabels labels_;
  Dataflow dataflow_;
  std::vector<std::uint32_t> sends_;                             ///< the span of each message's send
  std::vector<std::pair<std::uint32_t, std::size_t>> receives_;  ///< span and message of each receive
  std::unordered_map<Action, std::uint32_t, ActionHash> label_indices_;
  trace::Timeline timeline_;
};

}  // namespace

trace::Category category_of(ActionType type) {
  switch (type) {
    case ActionType::Forward:
      return trace::Category::Forward;
    case ActionType::Backward:
      return trace::Category::Backward;
    case ActionType::InputGradient:
      return trace::Category::InputGradient;
    case ActionType::WeightGradient:
      return trace::Category::WeightGradient;
    case ActionType::Recompute:
      return trace::Category::Recompute;
    case ActionType::CurvatureA:
    case ActionType::CurvatureB:
    case ActionType::AccumulateFactor:
      return trace::Category::Curvature;
    case ActionType::Invert:
    case ActionType::InvertLayers:
    case ActionType::InverseRoot:
      return trace::Category::Inversion;
    case ActionType::Precondition:
      return trace::Category::Precondition;
    case ActionType::SquareGradient:
    case ActionType::UpdateMoments:
    case ActionType::Update:
      return trace::Category::Update;
    case ActionType::SendActivation:
    case ActionType::ReceiveActivation:
    case ActionType::SendGradient:
    case ActionType::ReceiveGradient:
      return trace::Category::Message;
    default:
      return traits_of(type).is_collective ? trace::Category::Collective : trace::Category::Other;
  }
}

trace::Timeline timeline_of(const Schedule& schedule, const std::vector<RankTimes>& times, std::string title,
                            ActionLabels labels) {
  return TimelineBuilder(schedule, times, std::move(title), labels).build();
}

}  // namespace plenum::schedule
