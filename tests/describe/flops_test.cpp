#include "plenum/describe/flops.h"

#include <gtest/gtest.h>

namespace plenum::describe {
namespace {

TEST(Flops, OfBertBasePerTokenAreThePublishedOnes) {
  const ModelConfig config = preset("bert-base");
  const Work without_attention{.tokens = 1};
  EXPECT_NEAR(forward_flops(config, without_attention), 169.9e6, 0.1e6);
  const Work masked{.masked = 100};
  EXPECT_NEAR(forward_flops(config, masked) * 0.15 / 100, 7.2e6, 0.1e6);
  const Work sequence{.tokens = 512, .squared_lengths = 512 * 512};
  const Work tokens{.tokens = 512};
  EXPECT_NEAR(forward_flops(config, sequence) / forward_flops(config, tokens), 1.111, 0.001);
  EXPECT_DOUBLE_EQ(training_flops(config, sequence), 3 * forward_flops(config, sequence));
}

}  // namespace
}  // namespace plenum::describe
