#pragma once

namespace plenum::ops {

/// How far a Float32 result may be from the double-precision reference, relative to the largest element of
/// the reference: rounding of sums of some thousand terms, and no more.
inline constexpr double kFloat32Relative = 2e-5;

/// How far an analytic gradient may be from central differences of the double-precision reference, relative
/// to the largest difference.
inline constexpr double kGradientRelative = 5e-5;

/// The step of those differences, for arguments of magnitude 1.
inline constexpr double kDifferenceStep = 1e-4;

}  // namespace plenum::ops
