#pragma once

namespace plenum::ops {

/// How far a Float32 result may be from the double-precision reference, relative to the largest element of
/// the reference: rounding of sums of some thousand terms, and no more.
inline constexpr double kFloat32Relative = 2e-5;

/// The same for a BFloat16 result of inputs that BFloat16 holds. Half a unit in its last place is 2^-9 of the
/// next power of two, so 2^-8 of an element at worst, 3.9e-3; twice where an intermediate was rounded too.
inline constexpr double kBFloat16Relative = 8e-3;

/// How far an analytic gradient may be from central differences of the double-precision reference, relative
/// to the largest difference.
inline constexpr double kGradientRelative = 5e-5;

/// The step of those differences, for arguments of magnitude 1.
inline constexpr double kDifferenceStep = 1e-4;

}  // namespace plenum::ops
