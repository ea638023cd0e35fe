#include "plenum/schedule/simulate/message_order.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "plenum/schedule/simulate/replay.h"
#include "plenum/schedule/simulate/usual_costs.h"

namespace plenum::schedule {
namespace {

/// When the messages of every step are sent.
class SendTimes {
 public:
  /// Nothing if the schedule does not run. Borrows the dataflow.
  static std::optional<SendTimes> of(const Dataflow& dataflow, const CostModel& costs) {
    const Schedule& schedule = dataflow.schedule();
    // Without ages, all that a step waits for within itself is there in the first one, too.
    const std::size_t num_cycles = schedule.problem.staleness == 0 ? 1 : num_cycles_to_steady_state(dataflow);
    const ReplayResult result = replay(schedule, dataflow, costs, num_cycles, MessageOrder::Free);
    if (!result.blocked.empty()) return std::nullopt;
    SendTimes times(dataflow);
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      const LaneProgram& compute = schedule.ranks[rank].lane(Lane::Compute);
      const LaneTimes& lane = result.times[rank][static_cast<std::size_t>(Lane::Compute)];
      for (std::size_t step = 0; step < schedule.num_steps(); ++step) {
        for (std::size_t i = compute.step_begin(step); i < compute.step_end(step); ++i) {
          const std::optional<Action> send = message_after(compute.actions()[i], dataflow.layers());
          if (send) times.times_[times.index(*send, step)] = lane[i].end;
        }
      }
    }
    return times;
  }

  double at(const Action& send, std::size_t step) const { return times_[index(send, step)]; }

 private:
  explicit SendTimes(const Dataflow& dataflow)
      : num_stages_(dataflow.layers().num_stages()),
        num_micro_batches_(dataflow.schedule().problem.num_micro_batches),
        times_(dataflow.schedule().num_steps() * 2 * num_stages_ * num_micro_batches_) {}

  std::size_t index(const Action& send, std::size_t step) const {
    const std::size_t direction = send.type == ActionType::SendActivation ? 0 : 1;
    return ((step * 2 + direction) * num_stages_ + send.stage.index()) * num_micro_batches_ +
           send.micro_batch.index();
  }

  std::size_t num_stages_;
  std::size_t num_micro_batches_;
  std::vector<double> times_;
};

/// Where a message stands among those of all ranks: by when it is sent; of those that are sent at a time, as
/// they usually are, which sets apart those of which one leads to the other.
struct MessageKey {
  double time = 0;
  double usual_time = 0;
  Action send;

  friend bool operator<(const MessageKey& a, const MessageKey& b) {
    return std::tie(a.time, a.usual_time, a.send.type, a.send.stage, a.send.micro_batch) <
           std::tie(b.time, b.usual_time, b.send.type, b.send.stage, b.send.micro_batch);
  }
};

LaneProgram sorted_lane(const LaneProgram& lane, const Dataflow& dataflow, const SendTimes& times,
                        const SendTimes& usual_times) {
  LaneProgram sorted;
  sorted.reserve(lane.actions().size());
  std::vector<std::pair<MessageKey, Action>> messages;
  for (std::size_t step = 0; step < lane.num_steps(); ++step) {
    messages.clear();
    for (const Action& action : lane.step(step)) {
      const Action send = is_send(action.type) ? action : dataflow.counterpart(action);
      messages.push_back({{times.at(send, step), usual_times.at(send, step), send}, action});
    }
    std::sort(messages.begin(), messages.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [key, action] : messages) sorted.append(action);
    sorted.end_step();
  }
  return sorted;
}

bool order_by(Schedule& schedule, const CostModel* costs) {
  std::vector<LaneProgram> lanes;
  const Dataflow dataflow(schedule);
  const std::optional<SendTimes> usual = SendTimes::of(dataflow, UsualCosts(schedule.problem));
  if (!usual) return false;
  const std::optional<SendTimes> wanted = costs == nullptr ? std::nullopt : SendTimes::of(dataflow, *costs);
  for (const RankProgram& rank : schedule.ranks) {
    lanes.push_back(sorted_lane(rank.lane(Lane::Pipeline), dataflow, wanted ? *wanted : *usual, *usual));
  }
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    schedule.ranks[rank].lane(Lane::Pipeline) = std::move(lanes[rank]);
  }
  return true;
}

}  // namespace

bool order_messages(Schedule& schedule) {
  return order_by(schedule, nullptr);
}

bool order_messages(Schedule& schedule, const CostModel& costs) {
  return order_by(schedule, &costs);
}

}  // namespace plenum::schedule
