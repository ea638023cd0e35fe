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

constexpr std::array kAlgorithms = {
    Algorithm::Optimal,           Algorithm::Nnlshp,   Algorithm::Lpfhp, Algorithm::Spfhp,
    Algorithm::BestFitDecreasing, Algorithm::Streaming};

PackingResult find_plan(const PackingProblem& problem, Algorithm algorithm, const PackOptions& options) {
  PackingResult result{.algorithm = algorithm, .plan = {}, .bound = {}, .seconds = 0};
  switch (algorithm) {
    case Algorithm::Optimal: {
      OptimalResult optimal = pack_optimal(problem, {.time_limit_seconds = options.time_limit_seconds});
      result.plan = std::move(optimal.plan);
      result.bound = std::move(optimal.bound);
      break;
    }
    case Algorithm::Nnlshp:
      result.plan = pack_nnlshp(problem);
      break;
    case Algorithm::Lpfhp:
      result.plan = pack_lpfhp(problem);
      break;
    case Algorithm::Spfhp:
      result.plan = pack_spfhp(problem);
      break;
    case Algorithm::BestFitDecreasing:
      result.plan = pack_best_fit_decreasing(problem);
      break;
    case Algorithm::Streaming:
      result.plan = pack_streaming(problem, {.max_open_packs = options.max_open_packs, .seed = options.seed});
      break;
  }
  return result;
}

}  // namespace

std::span<const Algorithm> all_algorithms() {
  return kAlgorithms;
}

std::string_view algorithm_name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::Optimal:
      return "optimal";
    case Algorithm::Nnlshp:
      return "nnlshp";
    case Algorithm::Lpfhp:
      return "lpfhp";
    case Algorithm::Spfhp:
      return "spfhp";
    case Algorithm::BestFitDecreasing:
      return "bfd";
    case Algorithm::Streaming:
      return "streaming";
  }
  return "unknown";
}

std::optional<std::string> reason_against(const PackingProblem& problem, Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::Nnlshp:
      if (problem.depth < 2 || problem.depth > 3) {
        return fmt::format("it packs at most 2 or 3 sequences together, and the depth is {}", problem.depth);
      }
      if (problem.capacity > kNnlshpLargestCapacity) {
        return fmt::format("it is for capacities up to {}, and this one is {}", kNnlshpLargestCapacity,
                           problem.capacity);
      }
      return std::nullopt;
    case Algorithm::BestFitDecreasing:
    case Algorithm::Streaming:
      if (problem.histogram.num_sequences() > kMostSinglePlacements) {
        return fmt::format("it places sequences one by one, which {} are too many for",
                           base::format_count(problem.histogram.num_sequences()));
      }
      return std::nullopt;
    case Algorithm::Optimal:
    case Algorithm::Lpfhp:
    case Algorithm::Spfhp:
      return std::nullopt;
  }
  return std::nullopt;
}

PackingResult pack(const PackingProblem& problem, Algorithm algorithm, const PackOptions& options) {
  check_problem(problem);
  if (const auto reason = reason_against(problem, algorithm)) {
    base::fail("{} cannot pack this: {}", algorithm_name(algorithm), *reason);
  }
  const auto start = std::chrono::steady_clock::now();
  PackingResult result = find_plan(problem, algorithm, options);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  check_plan(result.plan, problem);
  if (algorithm != Algorithm::Optimal) result.bound = prove_bound(problem, result.plan.num_packs(), options);
  base::check(result.bound.packs <= result.plan.num_packs(), "a bound is above what was reached: {} > {}",
              result.bound.packs, result.plan.num_packs());
  return result;
}

LowerBound prove_bound(const PackingProblem& problem, std::uint64_t num_packs, const PackOptions& options) {
  LowerBound quick = combinatorial_bound(problem);
  if (options.bound == BoundEffort::Quick || quick.packs == num_packs) return quick;
  const LowerBound dual = pack_optimal(problem, {.time_limit_seconds = options.time_limit_seconds}).bound;
  return dual.packs > quick.packs ? dual : quick;
}

double packing_efficiency(const PackingPlan& plan, std::uint64_t num_tokens) {
  return static_cast<double>(num_tokens) /
         (static_cast<double>(plan.num_packs()) * static_cast<double>(plan.capacity));
}

}  // namespace plenum::packing
