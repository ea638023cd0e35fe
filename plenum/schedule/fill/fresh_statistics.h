#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plenum/schedule/fill/placement.h"

namespace plenum::schedule {

/// The most micro-batches that the statistics of a stage may cover on each rank that holds it.
struct MostCovered {
  std::size_t a = 0;
  std::size_t b = 0;
};

/// Divides the layers of every stage into parts, of which each takes its statistics in a step of its own.
struct LayerParts {
  std::size_t count = 1;
  std::size_t cycle_steps = 1;  ///< at least as many

  /// Of the parts the one that has layer `index` of `num_layers`.
  std::size_t part(std::size_t index, std::size_t num_layers) const { return index * count / num_layers; }
  /// In which it takes them: spread evenly over the cycle.
  std::size_t step(std::size_t part) const { return part * cycle_steps / count; }
};

/// Where K-FAC's statistics stand that are taken in the step whose values they are made of.
struct FreshStatistics {
  std::vector<std::size_t> steps;  ///< of the items of the whole refresh, the step whose statistics they use
  std::vector<bool> is_dropped;    ///< of the items of the whole refresh, statistics that are not taken
  std::vector<PlacedItem> placed;  ///< all others that are statistics, numbered as without the dropped ones
};

/// Chooses which micro-batches the statistics of a step cover, and places them into the gaps behind the
/// actions that make their inputs: at the latest behind the last action of the step, and so before anything
/// of the next step needs the memory.
///
/// A rank covers the same micro-batches in all linear maps of a stage, as many as its gaps have room for; of
/// those that it could, the ones whose backward comes last, for which memory is needed the shortest. With
/// what is left, A covers more. A stage for which none of its holders has room is covered all the same, by
/// one micro-batch of a holder that lacks least for it: then the step gets longer.
class FreshStatisticsPlacer {
 public:
  /// Borrows both. Throws UserError if the refresh has no statistics of single micro-batches.
  FreshStatisticsPlacer(const SteadyStep& step, const Refresh& refresh);

  /// The most that a stage could cover on any rank.
  std::size_t num_micro_batches() const { return num_micro_batches_; }

  /// With at most so many micro-batches of each stage; both at least 1, `a` not below `b`.
  FreshStatistics place(const std::vector<MostCovered>& most, const LayerParts& parts) const;

 private:
  /// Statistics of a micro-batch, of all maps of a stage.
  struct OfMicroBatch {
    double ready = 0;  ///< when the last of its inputs exists
    std::vector<std::uint32_t> a, b;
  };
  struct StageOfRank {
    StageId stage;
    std::vector<OfMicroBatch> micro_batches;  ///< by the end of their backwards
  };
  struct RankGaps {
    std::vector<Gap> gaps;                 ///< in which something could stand
    std::vector<std::int64_t> next_order;  ///< SteadyStep::order() of the action behind each
    std::vector<StageOfRank> stages;
  };
  /// Items of a rank with their places, and how many seconds of them are beyond the gaps.
  struct Fit {
    std::vector<PlacedItem> placed;
    double beyond = 0;
  };
  /// Micro-batches [first, first + count) of those of a stage.
  struct Window {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  struct StageWindows {
    const StageOfRank* stage;
    Window a, b;
  };

  using Windows = std::vector<StageWindows>;

  void find_gaps(Rank rank);
  void collect();
  /// What the statistics of one rank are chosen from.
  struct Choice {
    const RankGaps& rank;
    const std::vector<MostCovered>& most;
    const LayerParts& parts;
  };
  std::size_t part_of(const Action& action, const LayerParts& parts) const;
  Fit fit(const RankGaps& rank, const Windows& windows, const LayerParts& parts) const;
  void fit_part(const RankGaps& rank, std::vector<std::uint32_t> items, std::size_t in_step, Fit& fit) const;
  std::vector<std::uint32_t> items_of(const Windows& windows) const;
  static Window latest(const StageOfRank& stage, std::size_t count, std::size_t earlier);
  std::optional<Windows> latest_that_fit(const Choice& choice, std::span<const StageOfRank* const> stages,
                                         std::size_t count) const;
  Windows most_that_fit(const Choice& choice) const;
  Windows with_more_a(const Choice& choice, const Windows& windows) const;
  void cover_all_stages(std::vector<Windows>& windows, const LayerParts& parts) const;

  const SteadyStep& step_;
  const Refresh& refresh_;
  std::size_t num_micro_batches_ = 0;
  std::vector<RankGaps> ranks_;
};

}  // namespace plenum::schedule
