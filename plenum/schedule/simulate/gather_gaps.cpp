#include "plenum/schedule/simulate/gather_gaps.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

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
    return std::tie(a.type, a.stage, a.micro_batch, a.first_layer, a.end_layer, a.factor, a.age) <
           std::tie(b.type, b.stage, b.micro_batch, b.first_layer, b.end_layer, b.factor, b.age);
  }
};

class GapGatherer {
 public:
  GapGatherer(const Dataflow& dataflow, const std::vector<RankTimes>& times, double step_seconds)
      : dataflow_(dataflow), schedule_(dataflow.schedule()), times_(times), step_seconds_(step_seconds) {
    number_nodes();
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      const std::vector<std::uint32_t> makers = makers_of(Rank::at(rank));
      tie_lanes(Rank::at(rank));
      tie_values(Rank::at(rank), makers);
    }
    sort();
  }

  void gather() {
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) delay(*node);
    for (const std::uint32_t node : order_) hasten(node);
  }

  GatheredStep finish() const {
    GatheredStep step{.times = times_, .order = nodes_};
    const std::vector<std::uint32_t> places = places_in_time();
    for_each_action([&](Rank rank, std::size_t lane, std::size_t i) {
      const std::uint32_t node = node_of(rank, lane, i);
      step.times[rank.index()][lane][i] = {starts_[node], starts_[node] + seconds_[node]};
      step.order[rank.index()][lane][i] = places[node];
    });
    return step;
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

  /// An action is a node; the two ends of a message and the members of a collective start together and are
  /// one.
  void number_nodes() {
    nodes_.resize(schedule_.ranks.size());
    std::map<Action, std::uint32_t, ActionOrder> shared;
    for_each_action([&](Rank rank, std::size_t lane, std::size_t i) {
      const Action& action = actions(rank, lane)[i];
      auto node = static_cast<std::uint32_t>(starts_.size());
      if (is_send(action.type) || traits_of(action.type).is_collective) {
        node = shared.try_emplace(action, node).first->second;
      } else if (is_receive(action.type)) {
        node = shared.try_emplace(dataflow_.counterpart(action), node).first->second;
      }
      nodes_[rank.index()][lane].push_back(node);
      if (node < starts_.size()) return;
      const ActionTime& time = times_[rank.index()][lane][i];
      starts_.push_back(time.start);
      seconds_.push_back(time.end - time.start);
      next_computation_.push_back({.from = node, .to = kNone});
    });
  }

  void tie_lanes(Rank rank) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
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

  /// Ties actions to what makes their inputs.
  void tie_values(Rank rank, const std::vector<std::uint32_t>& makers) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      for (std::size_t i = 0; i < actions(rank, lane).size(); ++i) {
        dataflow_.inputs(rank, actions(rank, lane)[i], values_);
        for (const ValueRef& value : values_) {
          const std::uint32_t maker = makers[value.index];
          if (maker != kNone) ties_.push_back({maker, node_of(rank, lane, i), seconds_[maker], value.age});
        }
      }
    }
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

  /// The place of each node when they are sorted by time, and by ties where times are the same.
  std::vector<std::uint32_t> places_in_time() const {
    using Next = std::pair<double, std::uint32_t>;
    std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
    std::vector<std::uint32_t> num_open(starts_.size(), 0);
    for (const Tie& tie : ties_) num_open[tie.to] += tie.num_steps == 0 ? 1 : 0;
    for (std::uint32_t node = 0; node < starts_.size(); ++node) {
      if (num_open[node] == 0) next.emplace(starts_[node], node);
    }
    std::vector<std::uint32_t> places(starts_.size());
    for (std::uint32_t place = 0; !next.empty(); ++place) {
      const std::uint32_t node = next.top().second;
      next.pop();
      places[node] = place;
      for (const Tie& tie : ties_from_[node]) {
        if (tie.num_steps == 0 && --num_open[tie.to] == 0) next.emplace(starts_[tie.to], tie.to);
      }
    }
    return places;
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

GatheredStep gather_gaps(const Dataflow& dataflow, const std::vector<RankTimes>& times, double step_seconds,
                         IdleTime idle) {
  GapGatherer gatherer(dataflow, times, step_seconds);
  if (idle == IdleTime::Gathered) gatherer.gather();
  return gatherer.finish();
}

}  // namespace plenum::schedule
