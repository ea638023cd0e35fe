#pragma once

#include <cstdint>
#include <vector>

#include "plenum/packing/deadline.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {

/// A pattern and how often the linear relaxation uses it. Its slots may hold shorter sequences than they
/// name.
struct FractionalPattern {
  std::vector<std::int32_t> lengths;  ///< descending
  double activity = 0;
};

/// A solution of the linear relaxation of a packing problem.
struct Relaxation {
  std::vector<FractionalPattern> patterns;  ///< those in use; together they cover every sequence
  double objective = 0;                     ///< the sum of their activities
  std::vector<double>
      duals;  ///< by length, linear between nodes; no pattern is worth more than 1, up to rounding
  std::vector<std::int32_t> nodes;  ///< the lengths with a dual of their own, ascending
  double bound = 0;                 ///< what the duals prove, up to rounding; the objective if solved
};

enum class PatternChoice {
  Any,      ///< any pattern that fits: the relaxation whose duals prove a bound
  Possible  ///< only patterns that the sequences at hand can fill at least once: rounds better
};

struct RelaxationOptions {
  PatternChoice choice = PatternChoice::Any;
  /// Stop at an objective of at most this: all that a better one could do is already known to be impossible.
  double good_enough = 0;
  /// The lengths with a price of their own (see PriceNodes); empty means all that occur. With fewer, the
  /// patterns cover the sequences only on average: as many, and as many tokens, around every node.
  std::vector<std::int32_t> nodes = {};
  /// Feasible duals by length to start from, linear between nodes; may be empty.
  std::vector<double> duals = {};
};

/// Solves the linear relaxation (Gilmore and Gomory, 1961): alternates between the best mix of the known
/// patterns and, at dual prices, the best new pattern for every length. Prices are smoothed towards the best
/// duals so far (Wentges, 1997). Starts with `known` patterns, and stops early when the deadline passes.
Relaxation relax(const PackingProblem& problem, const std::vector<std::vector<std::int32_t>>& known,
                 const RelaxationOptions& options, const Deadline& deadline);

}  // namespace plenum::packing
