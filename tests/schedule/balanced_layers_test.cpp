#include "plenum/schedule/generate/balanced_layers.h"

#include <gtest/gtest.h>

#include "tests/support/expect_user_error.h"

namespace plenum::schedule {
namespace {

using Layers = std::vector<std::uint16_t>;

TEST(BalancedLayers, AreAsManyOnEveryStageWhereAllCostTheSame) {
  EXPECT_EQ(balanced_layers(std::vector<double>(12, 1.0), 4), (Layers{3, 3, 3, 3}));
  EXPECT_EQ(balanced_layers(std::vector<double>(5, 1.0), 5), (Layers{1, 1, 1, 1, 1}));
  EXPECT_EQ(balanced_layers(std::vector<double>(5, 1.0), 1), (Layers{5}));
}

TEST(BalancedLayers, AreFewerWhereTheHeadsAre) {
  std::vector<double> costs(8, 1.0);
  costs.back() = 3;
  EXPECT_EQ(balanced_layers(costs, 4), (Layers{2, 2, 3, 1}));
}

TEST(BalancedLayers, DifferAsLittleAsTheDearestStageAllows) {
  std::vector<double> costs(7, 1.0);
  costs.back() = 4;  // which no division makes cheaper
  EXPECT_EQ(balanced_layers(costs, 4), (Layers{2, 2, 2, 1}));
}

TEST(BalancedLayers, NeedOneForEveryStage) {
  test::expect_user_error([] { balanced_layers(std::vector<double>(3, 1.0), 4); },
                          "every stage of a pipeline needs a layer: 4 stages, 3 layers");
}

}  // namespace
}  // namespace plenum::schedule
