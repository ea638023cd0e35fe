#include "plenum/packing/spfhp.h"

#include <algorithm>

#include "plenum/packing/open_packs.h"

namespace plenum::packing {

PackingPlan pack_spfhp(const PackingProblem& problem) {
  check_problem(problem);
  OpenPacks packs(problem.capacity, problem.depth);
  for (std::int64_t length = problem.histogram.longest(); length >= 1; --length) {
    std::uint64_t remaining = problem.histogram.counts[static_cast<std::size_t>(length)];
    while (remaining > 0) {
      const std::int64_t space = packs.roomiest_space();
      if (space < length) {
        packs.open(remaining, length, 1);
        break;
      }
      const std::uint64_t num_packs = std::min(packs.group_with(space).count, remaining);
      packs.extend(space, num_packs, length, 1);
      remaining -= num_packs;
    }
  }
  return packs.plan();
}

}  // namespace plenum::packing
