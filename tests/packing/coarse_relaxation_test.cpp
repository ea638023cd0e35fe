#include "plenum/packing/coarse_relaxation.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "plenum/packing/knapsack.h"

#include "small_problems.h"

namespace plenum::packing {
namespace {

TEST(RelaxCoarsely, NeverExceedsTheExactRelaxation) {
  std::mt19937 random(31);
  for (int trial = 0; trial < 300; ++trial) {
    const PackingProblem problem = random_problem(random, 80, 300);
    const Relaxation exact = relax(problem, {}, {}, Deadline(10));
    const Relaxation coarse = relax_coarsely(problem, {}, {.first_nodes = 3, .max_nodes = 12}, Deadline(10));
    ASSERT_LE(coarse.bound, exact.objective + 1e-6) << "trial " << trial;
  }
}

TEST(RelaxCoarsely, FindsDualsAtWhichNoPatternIsWorthMoreThanAPack) {
  std::mt19937 random(32);
  for (int trial = 0; trial < 300; ++trial) {
    const PackingProblem problem = random_problem(random, 80, 300);
    const Relaxation coarse = relax_coarsely(problem, {}, {.first_nodes = 4, .max_nodes = 9}, Deadline(10));
    const PatternKnapsack<double> knapsack(coarse.duals, problem.depth);
    ASSERT_LE(knapsack.best(problem.capacity), 1 + 1e-9) << "trial " << trial;
  }
}

TEST(RelaxCoarsely, ComesCloseToTheExactRelaxationWithFewPrices) {
  const PackingProblem problem = golden_problem("wikipedia_512_histogram.txt", 512, 3);
  const Relaxation coarse = relax_coarsely(problem, {}, {.first_nodes = 32, .max_nodes = 128}, Deadline(600));
  EXPECT_LE(coarse.nodes.size(), 128u);
  EXPECT_LE(coarse.bound, 8'143'829);
  EXPECT_GE(coarse.bound, 8'143'829 * 0.999);
}

TEST(RelaxCoarsely, KeepsAValidBoundWithoutTime) {
  const PackingProblem problem = golden_problem("wikipedia_512_histogram.txt", 512, 3);
  const Relaxation coarse = relax_coarsely(problem, {}, {.first_nodes = 32}, Deadline(0));
  EXPECT_LE(coarse.bound, 8'143'829);
  EXPECT_GT(coarse.bound, 0);
}

}  // namespace
}  // namespace plenum::packing
