#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// What is wrong with a schedule: the first action that offends, and why.
struct Violation {
  std::string where;  ///< "rank 2, compute, step 0, B2.1"
  std::string why;    ///< "needs the output gradient of stage 2 for micro-batch 1, which nothing makes"
};

/// What check() found out.
struct CheckResult {
  /// Empty: the schedule is proven right. Else ordered by step and by position in it; at most a hundred.
  std::vector<Violation> violations;
  /// For each rank, the most layers whose activations lie there at a time (one layer of one micro-batch
  /// counts 1; under recomputation, a stage's kept input counts 0 and recomputed layers count 1). Means
  /// little, as does the next, if there are violations.
  std::vector<std::size_t> peak_activation_layers;
  /// The same, but a layer counts until the last curvature action that reads its activations or gradients.
  std::vector<std::size_t> peak_kept_layers;
};

/// Proves that a schedule does what training needs, or says where it does not. See docs/schedules.md for the
/// rules. The schedule must be well formed.
CheckResult check(const Schedule& schedule);

/// Throws UserError with the first violation, if there is one.
void require_checked(const Schedule& schedule);

}  // namespace plenum::schedule
