#pragma once

namespace plenum::plan {

// Of gradients, moments and statistics, and of what is summed over many.
inline constexpr double kFloatBytes = 4;
inline constexpr double kDoubleBytes = 8;

}  // namespace plenum::plan
