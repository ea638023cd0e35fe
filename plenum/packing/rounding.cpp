#include "plenum/packing/rounding.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plenum/packing/pack_builder.h"

namespace plenum::packing {

namespace {

/// Activities this close below a whole number are taken for it.
constexpr double kWholeActivity = 1e-6;

/// Makes the whole packs of the relaxation, then one each of the patterns most nearly whole.
void make_packs(Relaxation& relaxation, double threshold, PackBuilder& builder) {
  std::vector<FractionalPattern>& patterns = relaxation.patterns;
  for (FractionalPattern& pattern : patterns) {
    const double whole = std::floor(pattern.activity + kWholeActivity);
    builder.make(pattern.lengths, static_cast<std::uint64_t>(whole));
    pattern.activity -= whole;
  }
  std::stable_sort(
      patterns.begin(), patterns.end(),
      [](const FractionalPattern& a, const FractionalPattern& b) { return a.activity > b.activity; });
  bool rounded = false;
  for (const FractionalPattern& pattern : patterns) {
    if (rounded && pattern.activity < threshold) return;
    if (!builder.can_make(pattern.lengths)) continue;
    builder.make(pattern.lengths, 1);
    rounded = true;
  }
  if (!rounded) builder.make(patterns.front().lengths, 1);
}

}  // namespace

PackingPlan round_relaxation(const PackingProblem& problem, Relaxation relaxation,
                             const RoundingOptions& options, const Deadline& deadline) {
  PackBuilder builder(problem);
  while (true) {
    make_packs(relaxation, options.threshold, builder);
    if (builder.num_remaining() == 0) break;
    if (deadline.passed()) {
      builder.make_rest();
      break;
    }
    const PackingProblem rest{
        .histogram = {builder.remaining()}, .capacity = problem.capacity, .depth = problem.depth};
    std::vector<std::vector<std::int32_t>> known;
    for (FractionalPattern& pattern : relaxation.patterns) known.push_back(std::move(pattern.lengths));
    const double promised =
        static_cast<double>(options.good_enough_packs) - static_cast<double>(builder.num_packs());
    relaxation = relax(rest, known, {.choice = PatternChoice::Possible, .good_enough = promised}, deadline);
  }
  return builder.plan();
}

}  // namespace plenum::packing
