#include "plenum/packing/lpfhp.h"

#include <algorithm>

#include "plenum/packing/open_packs.h"

namespace plenum::packing {
namespace {

/// Opens packs with as many copies of `length` as fit; the last one takes what is left over.
void open_filled(OpenPacks& packs, const PackingProblem& problem, std::int64_t length,
                 std::uint64_t remaining) {
  const std::int64_t repeat = std::min(problem.capacity / length, problem.depth);
  const std::uint64_t num_full = remaining / static_cast<std::uint64_t>(repeat);
  const auto rest = static_cast<std::int64_t>(remaining % static_cast<std::uint64_t>(repeat));
  if (num_full > 0) packs.open(num_full, length, repeat);
  if (rest > 0) packs.open(1, length, rest);
}

}  // namespace

PackingPlan pack_lpfhp(const PackingProblem& problem) {
  check_problem(problem);
  OpenPacks packs(problem.capacity, problem.depth);
  for (std::int64_t length = problem.histogram.longest(); length >= 1; --length) {
    std::uint64_t remaining = problem.histogram.counts[static_cast<std::size_t>(length)];
    while (remaining > 0) {
      const std::int64_t space = packs.tightest_space(length);
      if (space > problem.capacity) {
        open_filled(packs, problem, length, remaining);
        break;
      }
      const OpenPacks::Group& group = packs.group_with(space);
      const std::int64_t fitting =
          std::min(space / length, problem.depth - packs.num_sequences(group.contents));
      const std::uint64_t repeat = std::min(static_cast<std::uint64_t>(fitting), remaining);
      const std::uint64_t num_packs = std::min(group.count, remaining / repeat);
      packs.extend(space, num_packs, length, static_cast<std::int64_t>(repeat));
      remaining -= num_packs * repeat;
    }
  }
  return packs.plan();
}

}  // namespace plenum::packing
