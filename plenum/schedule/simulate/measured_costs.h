#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "plenum/schedule/core/schedule.h"
#include "plenum/schedule/simulate/cost_model.h"
#include "plenum/schedule/simulate/replay.h"

namespace plenum::schedule {

/// Durations of actions as they were measured while a schedule of the same step ran, with all ranks at work:
/// the mean over the ranks, micro-batches and steps in which an action of the same type, stage and layers
/// ran. What took more than one and a half times as long as usual is left out of the mean: a GPU that tries
/// algorithms for a shape that comes for the first time, a machine that did something else. A message or a
/// collective costs the least that one of its kind took, since any may have waited for another rank, or for
/// multiprocessors on which its own rank computed.
///
/// Of work that was measured whole, a piece takes its share and what each piece takes in addition, which
/// shows where some work was measured in pieces: the median of what these took longer than the whole, by
/// piece. Work that was measured in pieces alone takes what they came to without that, or, if they took less,
/// what it took whole before. What was never measured, and what is done for an empty micro-batch, takes no
/// time.
class MeasuredCosts final : public CostModel {
 public:
  /// Borrows the schedule that is measured, and what was measured before with another one of the same step:
  /// it stands for what this one does not do.
  explicit MeasuredCosts(const Schedule& schedule, const MeasuredCosts* before = nullptr)
      : schedule_(schedule), before_(before) {}

  /// Adds a cycle, of whose micro-batches some were empty. What did not run has no time at all.
  void add(const std::vector<RankTimes>& times, const std::vector<bool>& is_empty);
  /// Which micro-batches are empty in the cycle that is to be predicted.
  void expect_empty(std::vector<bool> is_empty) { is_empty_ = std::move(is_empty); }

  double seconds(Rank rank, const Action& action) const override;
  double latency_seconds(Rank /*from*/, Rank /*to*/) const override { return 0; }

 private:
  /// Type, stage, first and end layer, factor, piece and number of pieces.
  using Kind = std::array<std::uint32_t, 7>;
  static constexpr std::size_t kPiece = 5;
  static constexpr std::size_t kNumPieces = 6;
  struct Measured {
    std::vector<double> seconds;  ///< in ascending order
    double usual = 0;             ///< the mean without what took much longer than the median
  };
  /// Pieces of the same cutting.
  struct Pieces {
    std::uint32_t count = 0;  ///< of those that were measured
    double seconds = 0;       ///< all together
  };
  static Kind kind_of(const Action& action);
  static Kind whole_of(Kind kind);
  static void settle(Measured& measured);
  const Measured* find(const Kind& kind) const;
  /// As it was measured, or what its pieces come to; before if not with this schedule. Never negative.
  std::optional<double> whole_seconds(const Kind& kind) const;
  void join_pieces();
  static bool is_of(const std::vector<bool>& micro_batches, const Action& action);

  const Schedule& schedule_;
  const MeasuredCosts* before_;
  std::map<Kind, Measured> measured_;
  std::map<Kind, std::map<std::uint32_t, Pieces>> joined_;  ///< by what they are pieces of, and how many
  double piece_seconds_ = 0;  ///< what work takes longer for each piece that it is cut into
  std::vector<bool> is_empty_;
};

}  // namespace plenum::schedule
