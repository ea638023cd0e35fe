#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plenum/plan/cluster.h"
#include "plenum/plan/simulated_step.h"
#include "plenum/plan/step_sampler.h"
#include "plenum/plan/strategies.h"
#include "plenum/plan/strategy_memory.h"

namespace plenum::plan {

struct SearchOptions {
  StrategyGrid grid = {};
  std::optional<double> memory_limit_bytes = {};  ///< of a process; what the cluster has if absent
  std::size_t num_best = 10;                      ///< that are to be found for certain
  std::size_t most_simulated = 200;
  std::size_t num_steps = 3;      ///< that are looked at
  std::size_t most_replicas = 4;  ///< that are written out of a step
};

/// A strategy that was simulated and fits.
struct Plan {
  Candidate candidate;
  double least_seconds = 0;  ///< its bound
  SimulatedStep step;
  StrategyMemory memory;
  double refresh_steps = 0;    ///< PlannedSchedule's
  bool fills_bubbles = false;  ///< likewise

  const Strategy& strategy() const { return candidate.strategy; }
};

struct SearchResult {
  std::vector<Plan> ranked;           ///< fastest first
  std::vector<std::size_t> frontier;  ///< of them: those that nothing is both faster and smaller than
  std::size_t num_candidates = 0;
  std::size_t num_too_large = 0;  ///< by their bound, or of those that were looked at by every byte
  std::size_t num_simulated = 0;
  bool is_cut_off = false;  ///< most_simulated were, and a faster one may be left
  double memory_limit_bytes = 0;
  double bound_seconds = 0;                ///< that bounds took, wall time
  std::optional<std::string> reason = {};  ///< why nothing fits
};

/// What a process may take: a device, or on CPUs a node, or a rank's part of it.
double memory_of_process(const Cluster& cluster, std::size_t num_ranks);

/// One strategy, as the search sees it.
Plan plan_of(const Candidate& candidate, const StrategyRequest& request, const StepSampler& sampler,
             const Cluster& cluster, const SearchOptions& options = {});

/// What an optimizer's work on matrices adds to a plan, held against the same layout with the optimizer that
/// updates all other parameters.
struct MatrixOverhead {
  double seconds = 0;  ///< of a step
  double bytes = 0;    ///< of the process that takes the most
  double share_of(double step_seconds) const { return seconds / (step_seconds - seconds); }
};
/// Nothing where there is no such work.
std::optional<MatrixOverhead> matrix_overhead(const Plan& plan, const StrategyRequest& request,
                                              const StepSampler& sampler, const Cluster& cluster,
                                              const SearchOptions& options = {});

/// Bounds every strategy, simulates those that can fit in the order of their bounds until no other can be
/// among the best, and ranks them. `model_name` stands in reasons.
SearchResult search(const StrategyRequest& request, const std::string& model_name, const StepSampler& sampler,
                    const Cluster& cluster, const SearchOptions& options = {});

}  // namespace plenum::plan
