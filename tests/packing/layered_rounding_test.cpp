#include "plenum/packing/layered_rounding.h"

#include <random>

#include <gtest/gtest.h>

#include "plenum/packing/similar_packs.h"

#include "small_problems.h"

namespace plenum::packing {
namespace {

constexpr LayerOptions kManyLayers{.coarse = {.first_nodes = 4, .max_nodes = 8}, .few_lengths = 3};

TEST(RoundInLayers, PacksEverySequenceOnce) {
  std::mt19937 random(41);
  for (int trial = 0; trial < 300; ++trial) {
    const PackingProblem problem = random_problem(random, 80, 2000);
    const Relaxation coarse = relax_coarsely(problem, {}, kManyLayers.coarse, Deadline(10));
    check_plan(round_in_layers(problem, coarse, kManyLayers, Deadline(10), Deadline(10)), problem);
  }
}

TEST(RoundInLayers, PacksEverySequenceWithoutTime) {
  const PackingProblem problem = golden_problem("squad_1_1_384_histogram.txt", 384, 4);
  const Relaxation coarse = relax_coarsely(problem, {}, kManyLayers.coarse, Deadline(0));
  check_plan(round_in_layers(problem, coarse, kManyLayers, Deadline(0), Deadline(0)), problem);
}

TEST(RoundInLayers, ComesCloseToTheFewestPacks) {
  const PackingProblem problem = golden_problem("wikipedia_512_histogram.txt", 512, 3);
  const LayerOptions options{.coarse = {.first_nodes = 64, .max_nodes = 256}, .few_lengths = 100};
  const Relaxation coarse = relax_coarsely(problem, {}, options.coarse, Deadline(600));
  const PackingPlan plan = round_in_layers(problem, coarse, options, Deadline(600), Deadline(600));
  check_plan(plan, problem);
  EXPECT_LE(static_cast<double>(plan.num_packs()), 8'143'829 * 1.005);
}

TEST(MakeSimilarPacks, MakesOnlyPacksThatAreWorthEnough) {
  const PackingProblem problem = golden_problem("wikipedia_512_histogram.txt", 512, 3);
  const Relaxation coarse = relax_coarsely(problem, {}, {.first_nodes = 64}, Deadline(600));
  PackBuilder builder(problem);
  make_similar_packs(problem, coarse, {.share = 0.9, .max_loss = 1e-4}, builder);
  EXPECT_GT(static_cast<double>(builder.num_packs()), 0.5 * coarse.objective);
  EXPECT_LE(static_cast<double>(builder.num_packs()), 0.9 * coarse.objective);
  for (const PackPattern& pattern : builder.plan().patterns) {
    double value = 0;
    for (const std::int32_t length : pattern.lengths) value += coarse.duals[static_cast<std::size_t>(length)];
    EXPECT_GE(value, 1 - 1e-4 - 1e-9);
  }
}

}  // namespace
}  // namespace plenum::packing
