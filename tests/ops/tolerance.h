#pragma once

namespace plenum::ops {

/// How far a Float32 result may be from the double-precision reference, relative to the largest element of
/// the reference: rounding of sums of some thousand terms, and no more.
inline constexpr double kFloat32Relative = 2e-5;

/// The same for a BFloat16 result of inputs that BFloat16 holds. Half a unit in its last place is 2^-9 of the
/// next power of two, so 2^-8 of an element at worst, 3.9e-3; twice where an intermediate was rounded too.
inline constexpr double kBFloat16Relative = 8e-3;

/// The same where two intermediates were rounded: 3 x 2^-8 = 1.17e-2. For the gradient of an MLP's GELU these
/// are the product and u, which moves gelu'(u) by |u gelu''(u)| 2^-8 at most, a third of 2^-8. Where gelu'(u)
/// is kept instead of u, it is the only one. Sums over rows are of Float32, and roundings of either sign add
/// up no faster than the elements, which are of either sign too: the same suffices, relative to the largest.
inline constexpr double kBFloat16TwiceRelative = 1.2e-2;

/// The same for two products in a row of which each cuts factors of fp32 to TF32: ten bits of the mantissa,
/// so 2^-10 for each of three factors and for what lies between the products, 3.9e-3 together.
inline constexpr double kTensorFloat32Relative = 4e-3;

/// How far an analytic gradient may be from central differences of the double-precision reference, relative
/// to the largest difference.
inline constexpr double kGradientRelative = 5e-5;

/// The step of those differences, for arguments of magnitude 1.
inline constexpr double kDifferenceStep = 1e-4;

}  // namespace plenum::ops
