#include "plenum/train/gpu_micro_batch.h"

#include <gtest/gtest.h>

namespace plenum::train {
namespace {

constexpr std::uint64_t kBytesOfToken = 1000;

std::int64_t tokens_of(int num_multiprocessors, std::uint64_t total_bytes, std::int64_t least) {
  return gpu_micro_batch_tokens(
      {.name = "some", .num_multiprocessors = num_multiprocessors, .total_bytes = total_bytes}, least,
      [](std::int64_t tokens) { return kBytesOfToken * static_cast<std::uint64_t>(tokens); });
}

TEST(GpuMicroBatchTokens, Are512OfAMultiprocessor) {
  EXPECT_EQ(tokens_of(132, 100'000'000, 128), 67'584);
  EXPECT_EQ(tokens_of(10, 100'000'000, 128), 5'120);
}

TEST(GpuMicroBatchTokens, AreHalvedUntilFourFifthsOfTheMemorySuffice) {
  EXPECT_EQ(tokens_of(132, 67'584 * kBytesOfToken / 4 * 5, 128), 67'584);
  EXPECT_EQ(tokens_of(132, 67'584 * kBytesOfToken / 4 * 5 - 5, 128), 33'792);
  EXPECT_EQ(tokens_of(132, 67'584 * kBytesOfToken / 4, 128), 8'448);
}

TEST(GpuMicroBatchTokens, HoldTheLongestSequence) {
  EXPECT_EQ(tokens_of(132, 1, 512), 528);
  EXPECT_EQ(tokens_of(2, 100'000'000, 2048), 2'048);
}

}  // namespace
}  // namespace plenum::train
