#include "plenum/packing/virtual_packs.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/packing/length_runs.h"

namespace plenum::packing {

VirtualPacks::VirtualPacks(const PackingPlan& plan, const LengthHistogram& histogram, std::uint64_t seed,
                           std::uint64_t epoch)
    : ids_(histogram), first_pack_{0}, first_slots_{0} {
  std::vector<std::uint64_t> num_slots(histogram.counts.size());
  for (const PackPattern& pattern : plan.patterns) {
    for_each_run(pattern.lengths, [&](std::size_t length, std::uint64_t per_pack) {
      base::check(length >= 1 && length < num_slots.size(), "a plan holds a length that does not occur: {}",
                  length);
      slots_.push_back({.length = static_cast<std::int32_t>(length),
                        .per_pack = static_cast<std::uint32_t>(per_pack),
                        .first_slot = num_slots[length]});
      num_slots[length] += per_pack * pattern.count;
    });
    first_slots_.push_back(slots_.size());
    first_pack_.push_back(first_pack_.back() + pattern.count);
  }
  base::check(num_slots == histogram.counts, "a plan does not belong to this histogram");

  const base::RandomFunction random(seed, base::Purpose::PackSlots, epoch);
  permutations_.reserve(histogram.counts.size());
  for (std::size_t length = 0; length < histogram.counts.size(); ++length) {
    permutations_.emplace_back(random, length, histogram.counts[length]);
  }
}

std::vector<std::uint64_t> VirtualPacks::pack(std::uint64_t pack_index) const {
  std::vector<std::uint64_t> sequence_ids;
  append_pack(pack_index, sequence_ids);
  return sequence_ids;
}

void VirtualPacks::append_pack(std::uint64_t pack_index, std::vector<std::uint64_t>& sequence_ids) const {
  base::check(pack_index < num_packs(), "there is no such pack: index={} packs={}", pack_index, num_packs());
  const auto after = std::upper_bound(first_pack_.begin(), first_pack_.end(), pack_index);
  const auto pattern = static_cast<std::size_t>(after - first_pack_.begin() - 1);
  const std::uint64_t pack_of_pattern = pack_index - first_pack_[pattern];
  for (std::size_t i = first_slots_[pattern]; i < first_slots_[pattern + 1]; ++i) {
    const Slots& slots = slots_[i];
    const std::uint64_t first_id = ids_.first(slots.length);
    const base::KeyedPermutation& permutation = permutations_[static_cast<std::size_t>(slots.length)];
    const std::uint64_t first_slot = slots.first_slot + pack_of_pattern * slots.per_pack;
    for (std::uint64_t copy = 0; copy < slots.per_pack; ++copy) {
      sequence_ids.push_back(first_id + permutation(first_slot + copy));
    }
  }
}

}  // namespace plenum::packing
