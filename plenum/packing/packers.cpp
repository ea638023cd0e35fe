#include "plenum/packing/packers.h"

#include <array>
#include <chrono>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/packing/best_fit_decreasing.h"
#include "plenum/packing/lpfhp.h"
#include "plenum/packing/nnlshp.h"
#include "plenum/packing/optimal.h"
#include "plenum/packing/spfhp.h"
#include "plenum/packing/streaming.h"

namespace plenum::packing {
namespace {

/// More sequences than anyone waits for when each is placed by itself: minutes for bfd, an hour for
/// streaming.
constexpr std::uint64_t kMostSinglePlacements = 10'000'000'000;

/// Turns of the search that a bound alone is worth: enough to try every plan of a small problem, where the
/// linear program may prove one pack too few.
constexpr std::int64_t kBoundTurns = 2;

std::optional<std::string> reason_against_many(const PackingProblem& problem) {
  if (problem.histogram.num_sequences() <= kMostSinglePlacements) return std::nullopt;
  return fmt::format("it places sequences one by one, which {} are too many for",
                     base::format_count(problem.histogram.num_sequences()));
}

/// For packers that know nothing but the problem.
template <PackingPlan (*kPack)(const PackingProblem&)>
FoundPlan find_plan(const PackingProblem& problem, const PackOptions&) {
  return {.plan = kPack(problem)};
}

constexpr std::array kPackers = {
    Packer{.name = "optimal",
           .summary = "the fewest packs that can be found in the time limit, by column generation and search",
           .find =
               [](const PackingProblem& problem, const PackOptions& options) {
                 OptimalResult found =
                     pack_optimal(problem, {.time_limit_seconds = options.time_limit_seconds});
                 return FoundPlan{.plan = std::move(found.plan), .bound = std::move(found.bound)};
               },
           .proves_bound = true},
    Packer{.name = "nnlshp",
           .summary = "non-negative least squares, 2 or 3 to a pack",
           .find = find_plan<pack_nnlshp>,
           .reason_against = reason_against_nnlshp,
           .greatest_depth = kNnlshpGreatestDepth},
    Packer{.name = "lpfhp", .summary = "longest pack first", .find = find_plan<pack_lpfhp>},
    Packer{.name = "spfhp", .summary = "shortest pack first", .find = find_plan<pack_spfhp>},
    Packer{.name = "bfd",
           .summary = "best fit decreasing, sequence by sequence",
           .find = find_plan<pack_best_fit_decreasing>,
           .reason_against = reason_against_many},
    Packer{.name = "streaming",
           .summary = "sequences in the order in which they arrive",
           .find =
               [](const PackingProblem& problem, const PackOptions& options) {
                 return FoundPlan{.plan = pack_streaming(problem, {.max_open_packs = options.max_open_packs,
                                                                   .seed = options.seed})};
               },
           .reason_against = reason_against_many},
};

}  // namespace

std::span<const Packer> all_packers() {
  return kPackers;
}

std::optional<std::string> reason_against(const PackingProblem& problem, const Packer& packer) {
  return packer.reason_against == nullptr ? std::nullopt : packer.reason_against(problem);
}

PackingResult pack(const PackingProblem& problem, const Packer& packer, const PackOptions& options) {
  check_problem(problem);
  if (const auto reason = reason_against(problem, packer)) {
    base::fail("{} cannot pack this: {}", packer.name, *reason);
  }
  const auto start = std::chrono::steady_clock::now();
  FoundPlan found = packer.find(problem, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  check_plan(found.plan, problem);
  base::check(found.bound.has_value() == packer.proves_bound, "a packer does not prove what it says: {}",
              packer.name);
  PackingResult result{.packer = &packer, .plan = std::move(found.plan), .bound = {}, .seconds = seconds};
  result.bound =
      found.bound ? *std::move(found.bound) : prove_bound(problem, result.plan.num_packs(), options);
  base::check(result.bound.packs <= result.plan.num_packs(), "a bound is above what was reached: {} > {}",
              result.bound.packs, result.plan.num_packs());
  return result;
}

LowerBound prove_bound(const PackingProblem& problem, std::uint64_t num_packs, const PackOptions& options) {
  LowerBound quick = combinatorial_bound(problem);
  if (options.bound == BoundEffort::Quick || quick.packs == num_packs) return quick;
  const LowerBound dual =
      pack_optimal(problem, {.time_limit_seconds = options.time_limit_seconds, .search_turns = kBoundTurns})
          .bound;
  return dual.packs > quick.packs ? dual : quick;
}

double packing_efficiency(const PackingPlan& plan, std::uint64_t num_tokens) {
  return static_cast<double>(num_tokens) /
         (static_cast<double>(plan.num_packs()) * static_cast<double>(plan.capacity));
}

}  // namespace plenum::packing
