#include "plenum/packing/best_fit_decreasing.h"

#include "plenum/packing/open_packs.h"

namespace plenum::packing {

PackingPlan pack_best_fit_decreasing(const PackingProblem& problem) {
  check_problem(problem);
  OpenPacks packs(problem.capacity, problem.depth);
  for (std::int64_t length = problem.histogram.longest(); length >= 1; --length) {
    const std::uint64_t count = problem.histogram.counts[static_cast<std::size_t>(length)];
    for (std::uint64_t sequence = 0; sequence < count; ++sequence) {
      const std::int64_t space = packs.tightest_space(length);
      if (space > problem.capacity) {
        packs.open(1, length, 1);
      } else {
        packs.extend(space, 1, length, 1);
      }
    }
  }
  return packs.plan();
}

}  // namespace plenum::packing
