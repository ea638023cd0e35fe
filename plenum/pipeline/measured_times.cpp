#include "plenum/pipeline/measured_times.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "plenum/pipeline/tags.h"

namespace plenum::pipeline {

using schedule::Action;
using schedule::ActionTime;
using schedule::kNumLanes;
using schedule::Rank;
using schedule::RankTimes;

namespace {

bool has_run(const ActionTime& time) {
  return time.end > 0;
}

/// Calls visit(action, step of the cycle, time) for everything that ran.
template <typename Visit>
void for_each_time(const schedule::Schedule& schedule, std::vector<RankTimes>& times, Visit visit) {
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      const schedule::LaneProgram& program = schedule.ranks[rank].lanes[lane];
      for (std::size_t step = 0; step < program.num_steps(); ++step) {
        const std::span<const Action> actions = program.step(step);
        for (std::size_t i = 0; i < actions.size(); ++i) {
          ActionTime& time = times[rank][lane][program.step_begin(step) + i];
          if (has_run(time)) visit(actions[i], step, time);
        }
      }
    }
  }
}

/// When the last of those that messages and collectives need was there.
class Arrivals {
 public:
  void add(const Action& action, std::size_t step, const ActionTime& time) {
    if (schedule::is_send(action.type)) raise(messages_[message_tag(action, step)], time.end);
    if (traits_of(action.type).is_collective) raise(collectives_[collective_tag(action, step)], time.start);
  }

  double of(const schedule::Dataflow& dataflow, const Action& action, std::size_t step) const {
    if (schedule::is_receive(action.type))
      return find(messages_, message_tag(dataflow.counterpart(action), step));
    if (traits_of(action.type).is_collective) return find(collectives_, collective_tag(action, step));
    return 0;
  }

 private:
  using Times = std::unordered_map<comm::Tag, double>;
  static void raise(double& latest, double time) { latest = std::max(latest, time); }
  static double find(const Times& times, comm::Tag tag) {
    const auto found = times.find(tag);
    return found == times.end() ? 0 : found->second;
  }

  Times messages_;
  Times collectives_;
};

}  // namespace

MeasuredCycle measure(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow,
                      std::span<const std::unique_ptr<RankExecutor>> ranks, std::uint64_t first_step,
                      CompleteCycle complete) {
  MeasuredCycle cycle{.first_step = first_step, .times = {}, .clock_offset_seconds = {}};
  cycle.times.resize(schedule.ranks.size());
  for (std::size_t rank = 0; rank < cycle.times.size(); ++rank) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      cycle.times[rank][lane].resize(schedule.ranks[rank].lanes[lane].actions().size());
    }
  }
  // Of several that are one rank together, the first stands for all.
  for (auto rank = ranks.rbegin(); rank != ranks.rend(); ++rank)
    cycle.times[(*rank)->rank().index()] = (*rank)->times();
  cycle.clock_offset_seconds.resize(schedule.ranks.size());  // threads share a clock
  complete(cycle);

  Arrivals arrivals;
  for_each_time(schedule, cycle.times, [&](const Action& action, std::size_t step, const ActionTime& time) {
    arrivals.add(action, step, time);
  });
  double origin = std::numeric_limits<double>::max();
  for_each_time(schedule, cycle.times, [&](const Action& action, std::size_t step, ActionTime& time) {
    // A sender may come to look at the clock after its receiver.
    time.start = std::min(time.end, std::max(time.start, arrivals.of(dataflow, action, step)));
    origin = std::min(origin, time.start);
  });
  for_each_time(schedule, cycle.times, [&](const Action&, std::size_t, ActionTime& time) {
    time = {time.start - origin, time.end - origin};
  });
  return cycle;
}

}  // namespace plenum::pipeline
