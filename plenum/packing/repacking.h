#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "plenum/base/philox.h"
#include "plenum/packing/deadline.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {

/// Improves a plan by taking out a few packs, those that waste most among them, and packing their sequences
/// anew: a pack less is kept, and so is often the same number of other packs, from which the next attempt
/// starts. Attempts are numbered and draw random numbers by their number, so that the same number of them
/// gives the same plan.
class Repacking {
 public:
  /// `duals` by length say what is waste: a pack wastes what its sequences are worth less than 1. Borrows
  /// `problem`.
  Repacking(const PackingProblem& problem, const PackingPlan& plan, std::vector<double> duals);

  /// Makes attempts until the plan has at most `enough_packs`, `num_attempts` are made or the deadline
  /// passes.
  void run(std::uint64_t enough_packs, std::int64_t num_attempts, const Deadline& deadline);

  std::uint64_t num_packs() const { return num_packs_; }
  PackingPlan plan() const;

 private:
  using Packs = std::map<std::vector<std::int32_t>, std::uint64_t>;

  std::uint64_t draw(std::uint64_t bound);
  double waste(const std::vector<std::int32_t>& lengths) const;
  double concentration(const Packs& packs) const;
  Packs choose(std::uint64_t number);
  PackingPlan pack_anew(const PackingProblem& part, std::uint64_t num_packs, const Deadline& deadline);
  void attempt(const Deadline& deadline);

  const PackingProblem& problem_;
  std::vector<double> duals_;
  Packs packs_;
  std::uint64_t num_packs_;
  base::RandomFunction random_{0, base::Purpose::Repacking};
  std::uint64_t attempt_ = 0;
  std::uint32_t draw_ = 0;
};

}  // namespace plenum::packing
