#pragma once

#include <span>
#include <vector>

namespace plenum::score {

// How well predicted numbers follow the expected ones: as many of each, at least one. 0 where the numbers of
// one side are all equal, for which no correlation is defined; not a number where one of them is none.

/// Pearson's correlation coefficient.
double pearson(std::span<const double> predicted, std::span<const double> expected);

/// Spearman's: Pearson's of the ranks.
double spearman(std::span<const double> predicted, std::span<const double> expected);

/// The rank of each value, which must be numbers, from 1; equal ones have the mean of the ranks that they
/// take up.
std::vector<double> ranks_of(std::span<const double> values);

}  // namespace plenum::score
