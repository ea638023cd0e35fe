#include "plenum/describe/flops.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/describe/bert.h"

namespace plenum::describe {
namespace {

double forward(const ModelConfig& config, const batch::Work& work) {
  return Flops(describe_bert(config)).forward(work);
}

TEST(Flops, OfBertBasePerTokenAreThePublishedOnes) {
  // Published are whole layers: those of tokens that are all read, less their head.
  const ModelConfig config = preset("bert-base");
  const double head = 2.0 * 768 * (768 + config.vocabulary);
  const double layers = forward(config, {.tokens = 1, .labels = {1}}) - head;
  EXPECT_NEAR(layers, 169.9e6, 0.1e6);
  EXPECT_NEAR(head * 0.15, 7.2e6, 0.1e6);
  const batch::Work sequence{.tokens = 512, .squared_lengths = 512 * 512, .labels = {512}};
  EXPECT_NEAR((forward(config, sequence) - 512 * head) / (512 * layers), 1.111, 0.001);
  EXPECT_DOUBLE_EQ(Flops(describe_bert(config)).training(sequence), 3 * forward(config, sequence));
}

TEST(Flops, OfTheLastLayerBehindAttentionAreThoseOfTokensThatHeadsRead) {
  ModelConfig config = preset("bert-base");
  const double behind_attention = 2.0 * 768 * 768 + 4.0 * 768 * 3072;
  const double masked_head = 2.0 * 768 * (768 + config.vocabulary);
  const double nothing_read = forward(config, {.tokens = 512});
  EXPECT_DOUBLE_EQ(forward(config, {.tokens = 512, .labels = {7}}),
                   nothing_read + 7 * (behind_attention + masked_head));
  config.has_next_sentence = true;
  EXPECT_DOUBLE_EQ(forward(config, {.tokens = 512, .labels = {0, 3}}),
                   nothing_read + 3 * (behind_attention + 2.0 * 768 * (768 + 2)));
  config.has_next_sentence = false;
  EXPECT_DOUBLE_EQ(forward(config, {.tokens = 512, .labels = {0, 3}}), nothing_read);
}

TEST(Flops, OfLayersAddUpWithTheHeadsInTheLast) {
  ModelConfig config = preset("bert-base");
  config.has_next_sentence = true;
  const Flops flops(describe_bert(config));
  const batch::Work work{.tokens = 512, .squared_lengths = 512 * 512, .labels = {77, 1}};
  const std::vector<double> of_layers = flops.forward_of_layers(work);
  ASSERT_EQ(of_layers.size(), 12U);
  EXPECT_NEAR(std::accumulate(of_layers.begin(), of_layers.end(), 0.0), flops.forward(work), 1);
  EXPECT_EQ(of_layers.front(), of_layers[10]);
  const double masked_head = 77 * 2.0 * 768 * (768 + config.vocabulary);
  EXPECT_GT(of_layers.back(), masked_head);
}

}  // namespace
}  // namespace plenum::describe
