#pragma once

#include <cstddef>

#include "plenum/workspace/kronecker.h"

namespace plenum::kernels {

/// What is known of the inverses of a linear map's two factors, as elements of a Float64 tensor that lies
/// where the kernels run: so whether they can be used is decided there, and the host need not wait for it.
enum class InverseState : std::size_t {
  IsReady,        ///< 1 where there is an inverse in use
  WasReady,       ///< before the last was taken
  IsTaken,        ///< 1 where the last inversion's result is in use
  HasFailed,      ///< 1 where the inversion under way came to nothing
  LeastPivotA,    ///< that rounding may leave of the damping on A
  LeastPivotB,    ///< the same on B
  AverageWeight,  ///< of all that was folded into running averages: below 1 as long as they are young
};

constexpr std::size_t index_of(InverseState which) {
  return static_cast<std::size_t>(which);
}

using workspace::kNumInverseStates;
static_assert(index_of(InverseState::AverageWeight) + 1 == kNumInverseStates);

}  // namespace plenum::kernels
