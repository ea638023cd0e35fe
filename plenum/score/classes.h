#pragma once

#include <cstdint>
#include <span>

namespace plenum::score {

// How well predicted classes agree with the expected ones: as many of each, at least one. Values are those of
// scikit-learn, with 0 where a quotient is not defined.

/// The share that is equal.
double accuracy(std::span<const std::int32_t> predicted, std::span<const std::int32_t> expected);

/// Of one class against all others: 2 p r / (p + r), where p is the share of what is predicted to be of the
/// class that is, and r the share of what is of the class that is predicted to be.
double f1(std::span<const std::int32_t> predicted, std::span<const std::int32_t> expected,
          std::int32_t of_class);

/// The mean of f1 over the classes that occur among either.
double macro_f1(std::span<const std::int32_t> predicted, std::span<const std::int32_t> expected);

/// Matthews' correlation coefficient, for any number of classes (Gorodkin's R_K): 1 where all are equal, 0
/// where predictions tell nothing.
double matthews(std::span<const std::int32_t> predicted, std::span<const std::int32_t> expected);

}  // namespace plenum::score
