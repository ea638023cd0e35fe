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
                                 .product_rate = 73e9,
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
  status.product_rate = 0;
  EXPECT_THAT(draw_training(status, 120), testing::HasSubstr("GFLOP/s  312 MB"));
}

TEST(DrawTraining, CountsInTeraOnAGpu) {
  TrainingStatus status = kStatus;
  status.flops_per_second = 522.4e12;
  status.product_rate = 700e12;
  EXPECT_THAT(draw_training(status, 120), testing::HasSubstr("522.4 TFLOP/s (75 %)"));
}

TEST(DescribeDevice, NamesThreadsOrTheGpu) {
  train::RunSummary summary;
  summary.num_ranks = 2;
  summary.threads_per_rank = 8;
  summary.micro_batches_per_rank = 1;
  summary.memory.planned_bytes = 312'000'000;
  summary.product_rate = 45.1e9;
  EXPECT_EQ(describe_device(summary),
            "2 ranks of 8 threads, 1 micro-batch each; 312 MB planned; matrix products reach 45.1 GFLOP/s "
            "here");
  summary.gpu = "NVIDIA H200";
  summary.memory.device = tensor::Device::Cuda;
  summary.product_rate = 700e12;
  EXPECT_EQ(describe_device(summary),
            "NVIDIA H200, 1 micro-batch a step; 312 MB of its memory planned; matrix products reach 700.0 "
            "TFLOP/s here");
  summary.product_rate = 0;
  EXPECT_EQ(describe_device(summary), "NVIDIA H200, 1 micro-batch a step; 312 MB of its memory planned");
}

}  // namespace
}  // namespace plenum::cli
