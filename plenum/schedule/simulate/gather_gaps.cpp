#include "plenum/schedule/simulate/gather_gaps.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

/// Gaps shorter than this part of the step are none.
constexpr double kNoGap = 1e-9;
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// `to` starts at least `seconds` after `from` of the step `num_steps` before it.
struct Tie {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  double seconds = 0;
  std::uint32_t num_steps = 0;
};

struct ActionOrder {
  bool operator()(const Action& a, const Action& b) const {
    return std::tie(a.type, a.stage, a.first_layer, a.end_layer, a.factor, a.age) <
           std::tie(b.type, b.stage, b.first_layer, b.end_layer, b.factor, b.age);
  }
};

class GapGatherer {
 public:
  GapGatherer(const Dataflow& dataflow, const CostModel& costs, const std::vector<RankTimes>& times,
              double step_seconds)
      : dataflow_(dataflow),
        schedule_(dataflow.schedule()),
        costs_(costs),
        times_(times),
        step_seconds_(step_seconds) {
    number_nodes();
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      const std::vector<std::uint32_t> makers = makers_of(Rank::at(rank));
      tie_lanes(Rank::at(rank));
      tie_values(Rank::at(rank), makers);
      tie_message_lane(Rank::at(rank), makers);
    }
    tie_messages();
    sort();
  }

  std::vector<RankTimes> run() {
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) delay(*node);
    for (const std::uint32_t node : order_) hasten(node);
    std::vector<RankTimes> times = times_;
    for_each_action([&](Rank rank, std::size_t lane, std::size_t i) {
      ActionTime& time = times[rank.index()][lane][i];
      const std::uint32_t node = node_of(rank, lane, i);
      time = {starts_[node], starts_[node] + seconds_[node]};
    });
    return times;
  }

 private:
  template <typename Visit>
  void for_each_action(Visit visit) const {
    for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
      for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
        for (std::size_t i = 0; i < actions(Rank::at(r), lane).size(); ++i) visit(Rank::at(r), lane, i);
      }
    }
  }
  std::span<const Action> actions(Rank rank, std::size_t lane) const {
    return schedule_.ranks[rank.index()].lanes[lane].actions();
  }
  std::uint32_t node_of(Rank rank, std::size_t lane, std::size_t i) const {
    return nodes_[rank.index()][lane][i];
  }

  /// An action is a node; the members of a collective start together and are one.
  void number_nodes() {
    nodes_.resize(schedule_.ranks.size());
    std::map<Action, std::uint32_t, ActionOrder> collectives;
    for_each_action([&](Rank rank, std::size_t lane, std::size_t i) {
      const Action& action = actions(rank, lane)[i];
      auto node = static_cast<std::uint32_t>(starts_.size());
      if (traits_of(action.type).is_collective) node = collectives.try_emplace(action, node).first->second;
      nodes_[rank.index()][lane].push_back(node);
      if (node < starts_.size()) return;
      const ActionTime& time = times_[rank.index()][lane][i];
      // A receive is its arrival: the latency stands between it and its send.
      const double start = is_receive(action.type) ? time.end : time.start;
      starts_.push_back(start);
      seconds_.push_back(time.end - start);
      next_computation_.push_back({.from = node, .to = kNone});
    });
  }

  void tie_lanes(Rank rank) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      if (static_cast<Lane>(lane) == Lane::Pipeline) continue;
      const std::vector<std::uint32_t>& nodes = nodes_[rank.index()][lane];
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const bool is_last = i + 1 == nodes.size();
        const Tie tie{nodes[i], nodes[is_last ? 0 : i + 1], seconds_[nodes[i]], is_last ? 1u : 0u};
        ties_.push_back(tie);
        if (static_cast<Lane>(lane) == Lane::Compute) next_computation_[nodes[i]] = tie;
      }
    }
  }

  /// The node that makes each value of a rank.
  std::vector<std::uint32_t> makers_of(Rank rank) {
    std::vector<std::uint32_t> makers(dataflow_.num_values(rank), kNone);
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      for (std::size_t i = 0; i < actions(rank, lane).size(); ++i) {
        dataflow_.outputs(rank, actions(rank, lane)[i], values_);
        for (const ValueRef& value : values_) makers[value.index] = node_of(rank, lane, i);
      }
    }
    return makers;
  }

  /// Ties `node` to what makes the inputs of `action`, which runs `num_steps` steps before it.
  void tie_inputs(Rank rank, const Action& action, const std::vector<std::uint32_t>& makers,
                  std::uint32_t node, std::uint32_t num_steps) {
    dataflow_.inputs(rank, action, values_);
    for (const ValueRef& value : values_) {
      const std::uint32_t maker = makers[value.index];
      if (maker != kNone) ties_.push_back({maker, node, seconds_[maker], value.age + num_steps});
    }
  }

  void tie_values(Rank rank, const std::vector<std::uint32_t>& makers) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      for (std::size_t i = 0; i < actions(rank, lane).size(); ++i) {
        tie_inputs(rank, actions(rank, lane)[i], makers, node_of(rank, lane, i), 0);
      }
    }
  }

  /// Messages leave one after another, but the lane goes on once a send is started: what comes behind it
  /// waits for the send's inputs, not for the message to leave. Goes round twice; the second time every
  /// action has others before it, of this step or the one before.
  void tie_message_lane(Rank rank, const std::vector<std::uint32_t>& makers) {
    constexpr auto kLane = static_cast<std::size_t>(Lane::Pipeline);
    struct Passed {
      std::size_t position = 0;
      std::uint32_t round = 0;
    };
    std::optional<Passed> message;
    std::optional<Passed> receive;
    std::vector<Passed> sends;  // since the receive
    for (const std::uint32_t round : {0u, 1u}) {
      for (std::size_t i = 0; i < actions(rank, kLane).size(); ++i) {
        const std::uint32_t node = node_of(rank, kLane, i);
        const bool sends_message = is_send(actions(rank, kLane)[i].type);
        if (round == 1) {
          const auto tie_after = [&](const Passed& passed) {
            const std::uint32_t from = node_of(rank, kLane, passed.position);
            ties_.push_back({from, node, seconds_[from], round - passed.round});
          };
          if (receive) tie_after(*receive);
          if (sends_message && message) tie_after(*message);
          for (const Passed& passed : sends) {
            if (sends_message) break;
            tie_inputs(rank, actions(rank, kLane)[passed.position], makers, node, round - passed.round);
          }
        }
        if (sends_message) {
          message = Passed{i, round};
          sends.push_back(*message);
        } else {
          receive = Passed{i, round};
          sends.clear();
        }
      }
    }
  }

  void tie_messages() {
    std::map<std::pair<Rank, std::uint32_t>, std::pair<std::uint32_t, double>> sends;
    for_each_action([&](Rank rank, std::size_t lane, std::size_t i) {
      const Action& action = actions(rank, lane)[i];
      if (!is_send(action.type)) return;
      const double latency = costs_.latency_seconds(rank, dataflow_.peer(action));
      sends[{rank, dataflow_.sent_value(rank, action)}] = {node_of(rank, lane, i), latency};
    });
    for_each_action([&](Rank rank, std::size_t lane, std::size_t i) {
      const Action& action = actions(rank, lane)[i];
      if (!is_receive(action.type)) return;
      const Rank from = dataflow_.peer(action);
      const auto& [send, latency] =
          sends.at({from, dataflow_.sent_value(from, dataflow_.counterpart(action))});
      ties_.push_back({send, node_of(rank, lane, i), seconds_[send] + latency, 0});
    });
  }

  /// Orders the nodes so that ties within a step point forwards, and lists the ties of each.
  void sort() {
    std::vector<std::uint32_t> num_open(starts_.size(), 0);
    ties_from_.resize(starts_.size());
    ties_to_.resize(starts_.size());
    for (const Tie& tie : ties_) {
      ties_from_[tie.from].push_back(tie);
      ties_to_[tie.to].push_back(tie);
      if (tie.num_steps == 0) ++num_open[tie.to];
    }
    for (std::uint32_t node = 0; node < starts_.size(); ++node) {
      if (num_open[node] == 0) order_.push_back(node);
    }
    for (std::size_t next = 0; next < order_.size(); ++next) {
      for (const Tie& tie : ties_from_[order_[next]]) {
        if (tie.num_steps == 0 && --num_open[tie.to] == 0) order_.push_back(tie.to);
      }
    }
    base::check(order_.size() == starts_.size(), "a schedule that runs has no circle: {} of {} actions",
                order_.size(), starts_.size());
  }

  /// Moves messages and collectives to where they are needed, a computation to the next one if it gets there.
  void delay(std::uint32_t node) {
    double latest = std::numeric_limits<double>::infinity();
    for (const Tie& tie : ties_from_[node]) {
      latest = std::min(latest, starts_[tie.to] + tie.num_steps * step_seconds_ - tie.seconds);
    }
    const Tie& next = next_computation_[node];
    if (next.to != kNone) {
      const double goal = starts_[next.to] + next.num_steps * step_seconds_ - next.seconds;
      if (latest < goal - kNoGap * step_seconds_) return;
    }
    if (latest < std::numeric_limits<double>::infinity()) starts_[node] = std::max(starts_[node], latest);
  }

  /// Moves a message or collective back to where it could start earliest.
  void hasten(std::uint32_t node) {
    if (next_computation_[node].to != kNone) return;
    double earliest = -std::numeric_limits<double>::infinity();
    for (const Tie& tie : ties_to_[node]) {
      earliest = std::max(earliest, starts_[tie.from] - tie.num_steps * step_seconds_ + tie.seconds);
    }
    if (earliest > -std::numeric_limits<double>::infinity())
      starts_[node] = std::min(starts_[node], earliest);
  }

  const Dataflow& dataflow_;
  const Schedule& schedule_;
  const CostModel& costs_;
  const std::vector<RankTimes>& times_;
  double step_seconds_;
  std::vector<std::array<std::vector<std::uint32_t>, kNumLanes>> nodes_;  ///< of each rank, lane and action
  std::vector<double> starts_;
  std::vector<double> seconds_;
  std::vector<Tie> next_computation_;  ///< in the same lane; to kNone for what does not compute
  std::vector<Tie> ties_;
  std::vector<std::vector<Tie>> ties_from_;
  std::vector<std::vector<Tie>> ties_to_;
  std::vector<std::uint32_t> order_;
  std::vector<ValueRef> values_;
};

}  // namespace

std::vector<RankTimes> gather_gaps(const Dataflow& dataflow, const CostModel& costs,
                                   const std::vector<RankTimes>& times, double step_seconds) {
  return GapGatherer(dataflow, costs, times, step_seconds).run();
}

}  // namespace plenum::schedule
