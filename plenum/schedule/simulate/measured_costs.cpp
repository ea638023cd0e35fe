#include "plenum/schedule/simulate/measured_costs.h"

#include <algorithm>
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
        const double seconds = time.end - time.start;
        Measured& of_kind = measured_[kind_of(actions[i])];
        of_kind.least = of_kind.count == 0 ? seconds : std::min(of_kind.least, seconds);
        of_kind.sum += seconds;
        ++of_kind.count;
      }
    }
  }
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
  if (is_send(action.type)) return found->second.least;
  return share * found->second.sum / static_cast<double>(found->second.count);
}

}  // namespace plenum::schedule
