#include "plenum/packing/pack_builder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plenum/packing/length_runs.h"
#include "plenum/packing/mixed_fit.h"

namespace plenum::packing {

PackBuilder::PackBuilder(const PackingProblem& problem)
    : plan_{.capacity = problem.capacity, .depth = problem.depth, .patterns = {}},
      remaining_(problem.histogram.counts),
      num_remaining_(problem.histogram.num_sequences()) {}

bool PackBuilder::can_make(std::span<const std::int32_t> lengths) const {
  bool possible = true;
  for_each_run(lengths, [&](std::size_t length, std::uint64_t copies) {
    possible = possible && remaining_[length] >= copies;
  });
  return possible;
}

void PackBuilder::make(std::span<const std::int32_t> slots, std::uint64_t times) {
  while (times > 0 && num_remaining_ > 0) {
    PackPattern pattern{.lengths = {}, .count = times};
    // The lengths come out descending: what one slot left behind, a shorter slot cannot exceed.
    for (const std::int32_t slot : slots) {
      auto length = static_cast<std::size_t>(slot);
      while (length > 0 && remaining_[length] == 0) --length;
      if (length == 0) break;
      --remaining_[length];
      pattern.lengths.push_back(static_cast<std::int32_t>(length));
    }
    if (pattern.lengths.empty()) return;
    for_each_run(pattern.lengths, [&](std::size_t length, std::uint64_t copies) {
      pattern.count = std::min(pattern.count, 1 + remaining_[length] / copies);
    });
    for_each_run(pattern.lengths, [&](std::size_t length, std::uint64_t copies) {
      remaining_[length] -= (pattern.count - 1) * copies;
    });
    times -= pattern.count;
    num_packs_ += pattern.count;
    num_remaining_ -= pattern.count * pattern.lengths.size();
    plan_.patterns.push_back(std::move(pattern));
  }
}

void PackBuilder::make_rest() {
  const std::size_t before = plan_.patterns.size();
  append_mixed_fit(std::exchange(remaining_, std::vector<std::uint64_t>(remaining_.size())), 0, plan_);
  for (std::size_t i = before; i < plan_.patterns.size(); ++i) num_packs_ += plan_.patterns[i].count;
  num_remaining_ = 0;
}

PackingPlan PackBuilder::plan() const {
  PackingPlan merged = plan_;
  std::vector<PackPattern>& patterns = merged.patterns;
  std::sort(patterns.begin(), patterns.end(),
            [](const PackPattern& a, const PackPattern& b) { return a.lengths > b.lengths; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < patterns.size(); ++i) {
    if (patterns[i].lengths == patterns[kept].lengths) {
      patterns[kept].count += patterns[i].count;
    } else if (++kept != i) {
      patterns[kept] = std::move(patterns[i]);
    }
  }
  if (!patterns.empty()) patterns.resize(kept + 1);
  return merged;
}

}  // namespace plenum::packing
