#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/packing/plan.h"

namespace plenum::packing {

/// A plan in the making and the sequences it does not hold yet.
class PackBuilder {
 public:
  explicit PackBuilder(const PackingProblem& problem);

  const std::vector<std::uint64_t>& remaining() const { return remaining_; }
  std::uint64_t num_remaining() const { return num_remaining_; }
  std::uint64_t num_packs() const { return num_packs_; }

  /// Whether a pack of exactly these lengths (descending) can be made of what remains.
  bool can_make(std::span<const std::int32_t> lengths) const;

  /// Makes up to `times` packs with these slots (descending). A slot takes the longest sequence that remains
  /// and fits in it, or stays empty; a pack without sequences is not made.
  void make(std::span<const std::int32_t> slots, std::uint64_t times);

  /// Packs all that remains by first fit decreasing.
  void make_rest();

  /// The packs made so far, equal ones counted together.
  PackingPlan plan() const;

 private:
  PackingPlan plan_;
  std::vector<std::uint64_t> remaining_;
  std::uint64_t num_remaining_;
  std::uint64_t num_packs_ = 0;
};

}  // namespace plenum::packing
