#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plenum/packing/bounds.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {

/// How much work goes into the lower bound of a plan whose packer proves none.
enum class BoundEffort {
  Quick,          ///< volume, L2 and depth, in microseconds
  LinearProgram,  ///< also the dual of the linear program, at the cost of pack_optimal() with a short search
};

struct PackOptions {
  double time_limit_seconds = 30;  ///< optimal and the linear program: when to stop improving
  BoundEffort bound = BoundEffort::Quick;
  std::int64_t max_open_packs = 1024;  ///< streaming: how many packs may be open at a time
  std::uint64_t seed = 0;              ///< streaming: names the order of arrival
};

/// What a packer found.
struct FoundPlan {
  PackingPlan plan;
  std::optional<LowerBound> bound = {};  ///< where it proves one itself
};

/// A way to pack. Its row in the table of packers.cpp is all that commands, tests and benchmarks know of it.
struct Packer {
  std::string_view name;     ///< stable: --algorithm takes it, reports have it
  std::string_view summary;  ///< one line for help, no full stop
  FoundPlan (*find)(const PackingProblem& problem, const PackOptions& options);
  /// Why it cannot be asked to pack a problem; nothing if it can. Left out: it can pack every one.
  std::optional<std::string> (*reason_against)(const PackingProblem& problem) = nullptr;
  std::int64_t greatest_depth = 0;  ///< of what it can pack; 0: any
  bool proves_bound = false;        ///< whether it does, which takes its time
};

/// Every packer, in the order in which they are listed. The first is the default and proves its bound.
std::span<const Packer> all_packers();

struct PackingResult {
  const Packer* packer = nullptr;
  PackingPlan plan;
  LowerBound bound;    ///< for the problem that was given
  double seconds = 0;  ///< time to find the plan; of a packer that proves its bound, that too
};

/// Why a packer cannot be asked to pack this problem; nothing if it can.
std::optional<std::string> reason_against(const PackingProblem& problem, const Packer& packer);

/// Packs, makes sure that every sequence is placed once within capacity and depth, and proves a lower bound.
/// Throws UserError if the problem cannot be packed, or not by this packer.
PackingResult pack(const PackingProblem& problem, const Packer& packer, const PackOptions& options);

/// The greatest lower bound that can be proven with the effort given. Tries no harder than it takes to prove
/// that `num_packs`, which some plan reaches, is best.
LowerBound prove_bound(const PackingProblem& problem, std::uint64_t num_packs, const PackOptions& options);

/// tokens / (packs * capacity): the share of the packs that holds tokens.
double packing_efficiency(const PackingPlan& plan, std::uint64_t num_tokens);

}  // namespace plenum::packing
