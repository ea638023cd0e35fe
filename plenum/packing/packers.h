#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plenum/packing/bounds.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {

/// The ways to pack. Names are stable; `algorithm_name` gives them.
enum class Algorithm { Optimal, Nnlshp, Lpfhp, Spfhp, BestFitDecreasing, Streaming };

/// Every algorithm, in the order in which they are listed.
std::span<const Algorithm> all_algorithms();

/// "optimal", "nnlshp", "lpfhp", "spfhp", "bfd", "streaming".
std::string_view algorithm_name(Algorithm algorithm);

/// How much work goes into the lower bound that comes with a plan of another algorithm than optimal.
enum class BoundEffort {
  Quick,          ///< volume, L2 and depth, in microseconds
  LinearProgram,  ///< also the dual of the linear program, at the cost of Algorithm::Optimal
};

struct PackOptions {
  double time_limit_seconds = 30;  ///< optimal and the linear program: when to stop improving
  BoundEffort bound = BoundEffort::Quick;
  std::int64_t max_open_packs = 1024;  ///< streaming: how many packs may be open at a time
  std::uint64_t seed = 0;              ///< streaming: names the order of arrival
};

struct PackingResult {
  Algorithm algorithm = Algorithm::Optimal;
  PackingPlan plan;
  LowerBound bound;    ///< for the problem that was given
  double seconds = 0;  ///< time to find the plan; for optimal, the proof too
};

/// Why `algorithm` cannot be asked to pack this problem; nothing if it can.
std::optional<std::string> reason_against(const PackingProblem& problem, Algorithm algorithm);

/// Packs, makes sure that every sequence is placed once within capacity and depth, and proves a lower bound.
/// Throws UserError if the problem cannot be packed, or not by this algorithm.
PackingResult pack(const PackingProblem& problem, Algorithm algorithm, const PackOptions& options);

/// The greatest lower bound that can be proven with the effort given. Tries no harder than it takes to prove
/// that `num_packs`, which some plan reaches, is best.
LowerBound prove_bound(const PackingProblem& problem, std::uint64_t num_packs, const PackOptions& options);

/// tokens / (packs * capacity): the share of the packs that holds tokens.
double packing_efficiency(const PackingPlan& plan, std::uint64_t num_tokens);

}  // namespace plenum::packing
