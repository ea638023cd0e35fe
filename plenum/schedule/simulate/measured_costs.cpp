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

MeasuredCosts::Kind MeasuredCosts::whole_of(Kind kind) {
  kind[kPiece] = 0;
  kind[kNumPieces] = 1;
  return kind;
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
  join_pieces();
}

void MeasuredCosts::settle(Measured& measured) {
  constexpr double kMuchLonger = 1.5;
  std::ranges::sort(measured.seconds);
  const double median = measured.seconds[measured.seconds.size() / 2];
  const auto end = std::ranges::upper_bound(measured.seconds, kMuchLonger * median);
  const double sum = std::accumulate(measured.seconds.begin(), end, 0.0);
  measured.usual = sum / static_cast<double>(end - measured.seconds.begin());
}

void MeasuredCosts::join_pieces() {
  joined_.clear();
  for (const auto& [kind, measured] : measured_) {
    if (kind[kNumPieces] == 1) continue;
    Pieces& pieces = joined_[whole_of(kind)][kind[kNumPieces]];
    ++pieces.count;
    pieces.seconds += measured.usual;
  }
  std::vector<double> added;
  for (const auto& [kind, cuttings] : joined_) {
    const Measured* whole = find(kind);
    for (const auto& [num_pieces, pieces] : cuttings) {
      if (whole != nullptr && pieces.count == num_pieces)
        added.push_back((pieces.seconds - whole->usual) / num_pieces);
    }
  }
  std::ranges::sort(added);
  piece_seconds_ = added.empty() ? 0 : std::max(0.0, added[added.size() / 2]);
}

const MeasuredCosts::Measured* MeasuredCosts::find(const Kind& kind) const {
  const auto found = measured_.find(kind);
  if (found != measured_.end()) return &found->second;
  return before_ == nullptr ? nullptr : before_->find(kind);
}

std::optional<double> MeasuredCosts::whole_seconds(const Kind& kind) const {
  if (!measured_.contains(kind)) {
    const auto cuttings = joined_.find(kind);
    if (cuttings != joined_.end()) {
      for (const auto& [num_pieces, pieces] : cuttings->second) {
        if (pieces.count != num_pieces) continue;
        // Negative if other pieces were delayed so that cutting seems to cost more than these took.
        const double seconds = pieces.seconds - num_pieces * piece_seconds_;
        if (seconds > 0) return seconds;
      }
    }
  }
  const Measured* whole = find(kind);
  return whole == nullptr ? std::nullopt : std::optional(whole->usual);
}

double MeasuredCosts::seconds(Rank /*rank*/, const Action& action) const {
  if (is_receive(action.type) || is_of(is_empty_, action)) return 0;
  const Kind kind = kind_of(action);
  if (is_send(action.type) || traits_of(action.type).is_collective) {
    const Measured* measured = find(kind);
    return measured == nullptr ? 0 : measured->seconds.front();
  }
  if (const auto measured = measured_.find(kind); measured != measured_.end()) return measured->second.usual;
  const std::optional<double> whole = whole_seconds(whole_of(kind));
  if (!whole) return 0;
  return action.num_pieces == 1 ? *whole : *whole / action.num_pieces + piece_seconds_;
}

}  // namespace plenum::schedule
