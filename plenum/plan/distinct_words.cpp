#include "plenum/plan/distinct_words.h"

#include <algorithm>
#include <cmath>

namespace plenum::plan {
namespace {

/// The sum of value(n) over n = 1 ... end, where a function that changes slowly is taken in runs, each at its
/// middle.
template <typename Value>
double sum_in_runs(double end, Value value) {
  constexpr double kRunShare = 1.0 / 32;
  double sum = 0;
  for (double first = 1; first <= end;) {
    const double count = std::min(std::max(1.0, std::floor(first * kRunShare)), std::floor(end) - first + 1);
    sum += count * value(first + (count - 1) / 2);
    first += count;
  }
  return sum;
}

}  // namespace

double expected_distinct_words(double num_tokens, double vocabulary) {
  if (num_tokens <= 0 || vocabulary < 1) return 0;
  const double harmonic = sum_in_runs(vocabulary, [](double rank) { return 1 / rank; });
  const double distinct = sum_in_runs(vocabulary, [&](double rank) {
    const double probability = 1 / (rank * harmonic);
    if (probability >= 1) return 1.0;
    return -std::expm1(num_tokens * std::log1p(-probability));
  });
  return std::min({distinct, num_tokens, vocabulary});
}

}  // namespace plenum::plan
