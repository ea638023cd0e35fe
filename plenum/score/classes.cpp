#include "plenum/score/classes.h"

#include <cmath>
#include <map>
#include <set>

#include "plenum/base/check.h"

namespace plenum::score {
namespace {

using Classes = std::span<const std::int32_t>;

void check_pairs(Classes predicted, Classes expected) {
  base::check(predicted.size() == expected.size() && !expected.empty(),
              "scores need as many predictions as labels, at least one: {} {}", predicted.size(),
              expected.size());
}

double quotient(double numerator, double denominator) {
  return denominator == 0 ? 0 : numerator / denominator;
}

/// How often each class occurs.
std::map<std::int32_t, double> count_classes(Classes classes) {
  std::map<std::int32_t, double> counts;
  for (const std::int32_t of_one : classes) ++counts[of_one];
  return counts;
}

double num_equal(Classes predicted, Classes expected) {
  double equal = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) equal += predicted[i] == expected[i] ? 1 : 0;
  return equal;
}

}  // namespace

double accuracy(Classes predicted, Classes expected) {
  check_pairs(predicted, expected);
  return num_equal(predicted, expected) / static_cast<double>(expected.size());
}

double f1(Classes predicted, Classes expected, std::int32_t of_class) {
  check_pairs(predicted, expected);
  double both = 0;
  double either = 0;  // counted once for each
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool is_predicted = predicted[i] == of_class;
    const bool is_expected = expected[i] == of_class;
    both += is_predicted && is_expected ? 1 : 0;
    either += (is_predicted ? 1 : 0) + (is_expected ? 1 : 0);
  }
  return quotient(2 * both, either);
}

double macro_f1(Classes predicted, Classes expected) {
  check_pairs(predicted, expected);
  std::set<std::int32_t> classes(predicted.begin(), predicted.end());
  classes.insert(expected.begin(), expected.end());
  double sum = 0;
  for (const std::int32_t of_class : classes) sum += f1(predicted, expected, of_class);
  return sum / static_cast<double>(classes.size());
}

double matthews(Classes predicted, Classes expected) {
  check_pairs(predicted, expected);
  const auto total = static_cast<double>(expected.size());
  const std::map<std::int32_t, double> of_predicted = count_classes(predicted);
  const std::map<std::int32_t, double> of_expected = count_classes(expected);
  double by_chance = 0;
  double squares_predicted = 0;
  double squares_expected = 0;
  for (const auto& [of_class, count] : of_predicted) {
    squares_predicted += count * count;
    const auto found = of_expected.find(of_class);
    if (found != of_expected.end()) by_chance += count * found->second;
  }
  for (const auto& [of_class, count] : of_expected) squares_expected += count * count;
  const double spread = std::sqrt((total * total - squares_predicted) * (total * total - squares_expected));
  return quotient(num_equal(predicted, expected) * total - by_chance, spread);
}

}  // namespace plenum::score
