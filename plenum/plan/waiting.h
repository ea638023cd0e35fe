#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/packing/histogram.h"

namespace plenum::plan {

// Ranks that hold the same layers end a step together: each waits for the one with the most to do. How long
// follows from the lengths of sequences and from how they are divided.

/// What a sequence of a length costs, in any unit.
struct LengthCost {
  double of_sequence = 0;
  double of_token = 0;
  double of_pair = 0;  ///< of a query and a key

  double at(double length) const { return of_sequence + (of_token + of_pair * length) * length; }
};

/// The costs of sequences of a histogram: the first moments, skewness and excess kurtosis without unit.
struct CostMoments {
  double mean = 0;
  double variance = 0;
  double skewness = 0;
  double kurtosis = 0;
  double least = 0;
  double most = 0;
};
/// Of at least one sequence.
CostMoments cost_moments(const packing::LengthHistogram& histogram, const LengthCost& cost);

/// How a step's sequences come to ranks.
enum class Division : std::uint8_t {
  AtRandom,  ///< each rank has as many, whatever their lengths
  Evenly,    ///< by their costs: data::divide_evenly
};

/// What ranks have to do in a step.
struct RankCosts {
  double mean = 0;
  double expected_most = 0;

  /// Of the mean rank, for the one that has the most.
  double waiting() const { return expected_most - mean; }
};

/// The mean, and the expected maximum over ranks, of the cost of so many sequences that each rank has.
///
/// At random, the cost of a rank is taken as normal with the skewness and kurtosis of the sum (Cornish and
/// Fisher, 1938), between the least and the most that it can be: within 3 % of what drawing gives, from 2 to
/// 4,096 ranks. Evenly, six sequences or more of each rank come to the mean; what fewer leave is that of a
/// typical sample, within 8 %; one cannot be divided.
RankCosts expected_rank_costs(const packing::LengthHistogram& histogram, const LengthCost& cost,
                              std::size_t sequences_per_rank, std::size_t num_ranks, Division division);

/// The expected maximum of n independent standard normal numbers: 0, 0.564, 0.846, 1.029 ...
double expected_normal_maximum(std::size_t n);

}  // namespace plenum::plan
