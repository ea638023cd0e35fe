#include "plenum/schedule/simulate/measured_costs.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace plenum::schedule {

MeasuredCosts::Kind MeasuredCosts::kind_of(const Action& action) {
  return {static_cast<std::uint32_t>(action.type),
          action.stage.value,
          action.first_layer.value,
          action.end_layer.value,
          action.factor,
          action.piece,
          action.num_pieces};
}

bool MeasuredCosts::is_of(const std::vector<bool>& micro_batches, const Action& action) {
  const bool has_one = traits_of(action.type).has_micro_batch && !counts_rounds(action.type);
  return has_one && action.micro_batch.index() < micro_batches.size() &&
         micro_batches[action.micro_batch.index()];
}

void MeasuredCosts::add(const std::vector<RankTimes>& times, const std::vector<bool>& is_empty) {
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      const std::span<const Action> actions = schedule_.ranks[rank].lanes[lane].actions();
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const ActionTime& time = times[rank][lane][i];
        const bool has_run = time.end > 0;
        if (!has_run || is_of(is_empty, actions[i])) continue;
        measured_[kind_of(actions[i])].seconds.push_back(time.end - time.start);
      }
    }
  }
  for (auto& [kind, measured] : measured_) settle(measured);
}

void MeasuredCosts::settle(Measured& measured) {
  constexpr double kMuchLonger = 1.5;
  std::ranges::sort(measured.seconds);
  const double median = measured.seconds[measured.seconds.size() / 2];
  const auto end = std::ranges::upper_bound(measured.seconds, kMuchLonger * median);
  const double sum = std::accumulate(measured.seconds.begin(), end, 0.0);
  measured.usual = sum / static_cast<double>(end - measured.seconds.begin());
}

double MeasuredCosts::seconds(Rank /*rank*/, const Action& action) const {
  if (is_receive(action.type) || is_of(is_empty_, action)) return 0;
  auto found = measured_.find(kind_of(action));
  double share = 1;
  if (found == measured_.end() && action.num_pieces > 1) {
    Action whole = action;
    whole.piece = 0;
    whole.num_pieces = 1;
    found = measured_.find(kind_of(whole));
    share = 1.0 / action.num_pieces;
  }
  if (found == measured_.end()) return 0;
  if (is_send(action.type) || traits_of(action.type).is_collective) return found->second.seconds.front();
  return share * found->second.usual;
}

}  // namespace plenum::schedule
