#pragma once

#include <cstdint>
#include <vector>

#include "plenum/base/permutation.h"
#include "plenum/packing/plan.h"
#include "plenum/packing/sequence_ids.h"

namespace plenum::packing {

/// The packs of a plan, filled with sequences, without a list of them: any pack is computed from its number.
/// Packs are numbered in the order of the plan's patterns. The k-th slot of length n, counted over all packs,
/// holds the sequence first(n) + P(k), where P is the keyed permutation of [0, count(n)) that (seed, epoch,
/// n) names; so every sequence is in exactly one pack, every epoch draws anew, and any number of readers
/// agree.
class VirtualPacks {
 public:
  /// `plan` must pack exactly the sequences of `histogram` (check_plan); neither is borrowed. Costs
  /// O(patterns * depth + lengths).
  VirtualPacks(const PackingPlan& plan, const LengthHistogram& histogram, std::uint64_t seed,
               std::uint64_t epoch);

  std::uint64_t num_packs() const { return first_pack_.back(); }
  std::uint64_t num_sequences() const { return ids_.num_sequences(); }

  /// The ids of the sequences in pack `pack_index`, longest first, in O(log patterns + depth).
  std::vector<std::uint64_t> pack(std::uint64_t pack_index) const;
  /// Appends them to `sequence_ids`.
  void append_pack(std::uint64_t pack_index, std::vector<std::uint64_t>& sequence_ids) const;

 private:
  /// The sequences of one length in a pattern.
  struct Slots {
    std::int32_t length = 0;
    std::uint32_t per_pack = 0;
    std::uint64_t first_slot = 0;  ///< number of the pattern's first slot of this length
  };

  SequenceIds ids_;
  std::vector<std::uint64_t> first_pack_;  ///< by pattern; the last is the number of packs
  std::vector<Slots> slots_;               ///< pattern after pattern
  std::vector<std::size_t> first_slots_;   ///< by pattern: where its slots begin; one more at the end
  std::vector<base::KeyedPermutation> permutations_;  ///< by length
};

}  // namespace plenum::packing
