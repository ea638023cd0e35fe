#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "plenum/schedule/fill/filler.h"
#include "plenum/schedule/simulate/cost_model.h"

namespace plenum::schedule {

/// When a filler's statistics are taken.
enum class FillMode : std::uint8_t {
  Deferred,  ///< of all micro-batches of a step, spread over the bubbles of the steps after it
  Fresh,  ///< of as many as there is room for, in the bubbles of that step: nothing of it is kept for later
};

struct FillOptions {
  FillMode mode = FillMode::Deferred;
  double margin = 0.01;  ///< the part by which the step may get longer
  /// The most bytes that a rank may keep alive for work that waits.
  double max_kept_bytes = std::numeric_limits<double>::infinity();
  /// The longest cycle to try; longer ones only where no refresh fits into that many steps. If not given, it
  /// follows from the bound: the longer a refresh takes, the more steps a cycle of several needs.
  std::optional<std::size_t> max_cycle_steps = std::nullopt;
  std::size_t max_staleness = kMaxAge;  ///< of any action, in steps
  /// Whether nothing waits when a cycle ends but for inverses: one refresh in each, all of its work within
  /// it. Then the step between two cycles needs nothing of those before it.
  bool drains = false;
};

/// The shares of a step's rows that the statistics of linear maps cover.
struct Coverage {
  double least = 1;  ///< of the map of which least is covered
  double mean = 1;   ///< over all maps
};

struct FillResult {
  Schedule schedule = {};    ///< a cycle of steps
  double refresh_steps = 0;  ///< steps of the cycle / refreshes in it
  double refresh_bound = 0;  ///< the least that any placement could reach: work of one refresh / idle time of
                             ///< a step in the compute or data lane where that is most, and at least 1
  double base_step_seconds = 0;              ///< with preconditioning and all else that every step does
  double filled_step_seconds = 0;            ///< mean over the cycle, simulated
  double utilization = 0;                    ///< of the compute lanes
  std::vector<double> peak_kept_bytes = {};  ///< of each rank, for work that waits
  double mean_age = 0;       ///< steps between the statistics and the preconditioning that uses them
  std::size_t max_age = 0;   ///< likewise
  Coverage coverage_a = {};  ///< of K-FAC's A
  Coverage coverage_b = {};
};

/// Places a filler's work into the bubbles of a one-step schedule so that it is renewed as often as they
/// allow: looks for the shortest cycle of steps per refresh, over cycles in which refreshes overlap, in which
/// every item has a place, on all ranks alike. The actions of the schedule keep their order. Throws UserError
/// if a limit cannot be kept.
///
/// Fresh: the shortest cycle of one refresh that has room for the inversions and for the curvature of one
/// micro-batch, in that with as many micro-batches as it has room for. If there is no room for one, it is
/// taken all the same, and the cycle is so long that the steps of it are not longer than the margin allows.
FillResult fill(const Schedule& base, const Filler& filler, const CostModel& costs,
                const FillOptions& options = {});

}  // namespace plenum::schedule
