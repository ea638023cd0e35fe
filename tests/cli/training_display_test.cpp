#include "plenum/cli/training_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plenum::cli {
namespace {

constexpr TrainingStatus kStatus{.step = 120,
                                 .num_steps = 1000,
                                 .loss = 6.1234,
                                 .tokens_per_second = 12'345,
                                 .flops_per_second = 45.1e9,
                                 .peak_flops = 73e9,
                                 .memory_bytes = 312'000'000,
                                 .seconds_left = 192};

TEST(DrawTraining, ShowsStepLossRatesMemoryAndRemainingTime) {
  EXPECT_EQ(draw_training(kStatus, 120),
            "step 120/1,000  loss 6.123  12,345 tokens/s  45.1 GFLOP/s (62 %)  312 MB  3 min 12 s left");
}

TEST(DrawTraining, FitsAnyWidth) {
  for (int width = 0; width < 120; ++width) {
    EXPECT_LE(draw_training(kStatus, width).size(), static_cast<std::size_t>(width));
  }
}

TEST(DrawTraining, LeavesOutAShareThatIsNotKnown) {
  TrainingStatus status = kStatus;
  status.peak_flops = 0;
  EXPECT_THAT(draw_training(status, 120), testing::HasSubstr("GFLOP/s  312 MB"));
}

}  // namespace
}  // namespace plenum::cli
