#include "plenum/cli/training_display.h"

#include <initializer_list>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plenum::cli {
namespace {

constexpr TrainingStatus kStatus{.step = 120,
                                 .num_steps = 1000,
                                 .loss = 6.1234,
                                 .learning_rate = 1.25e-3,
                                 .tokens_per_second = 12'345,
                                 .flops_per_second = 45.1e9,
                                 .product_rate = 73e9,
                                 .memory_bytes = 312'000'000,
                                 .seconds_left = 192};

TEST(DrawTraining, ShowsStepBarLossRemainingTimeAndThenTheRest) {
  EXPECT_EQ(draw_training(kStatus, 120, false),
            "step 120/1,000  [==                  ]   12 %  loss 6.123  3 min 12 s left  12,345 tokens/s  "
            "45.1 GFLOP/s (62 %)  312 MB");
}

TEST(DrawTraining, ShowsNoLossWhereNothingHadALabel) {
  TrainingStatus unlabelled = kStatus;
  unlabelled.loss.reset();
  EXPECT_EQ(draw_training(unlabelled, 30, false), "step 120/1,000  no loss");
}

TEST(DrawTraining, LeavesOutWhatMattersLeastWhereThereIsLessRoom) {
  EXPECT_EQ(draw_training(kStatus, 79, false),
            "step 120/1,000  [        ]   12 %  loss 6.123  3 min 12 s left  12,345 tokens/s");
  EXPECT_EQ(draw_training(kStatus, 59, false), "step 120/1,000   12 %  loss 6.123  3 min 12 s left");
  EXPECT_EQ(draw_training(kStatus, 45, false), "step 120/1,000  loss 6.123  3 min 12 s left");
  EXPECT_EQ(draw_training(kStatus, 30, false), "step 120/1,000  loss 6.123");
  EXPECT_EQ(draw_training(kStatus, 20, false), "step 120/1,000");
  EXPECT_EQ(draw_training(kStatus, 5, false), "");
}

TEST(DrawTraining, FitsAnyWidthAndCutsNothing) {
  for (int width = 0; width < 140; ++width) {
    const std::string line = draw_training(kStatus, width, false);
    EXPECT_LE(line.size(), static_cast<std::size_t>(width));
    for (const auto& [begin, end] :
         std::initializer_list<std::pair<const char*, const char*>>{{"step", "120/1,000"},
                                                                    {"loss", "loss 6.123"},
                                                                    {"3 min", "3 min 12 s left"},
                                                                    {"12,", "12,345 tokens/s"},
                                                                    {"45.", "45.1 GFLOP/s (62 %)"},
                                                                    {"312", "312 MB"}}) {
      if (line.find(begin) != std::string::npos) EXPECT_THAT(line, testing::HasSubstr(end)) << width;
    }
  }
}

TEST(DrawTraining, GivesWhatIsLeftOfTheLineToTheBar) {
  EXPECT_EQ(draw_training(kStatus, 90, false).size(), 90U);
  EXPECT_EQ(draw_training(kStatus, 60, false), draw_training(kStatus, 61, false)) << "no bar fits yet";
  EXPECT_LT(draw_training(kStatus, 300, false).size(), 140U);
}

TEST(DrawTraining, ColoursItsBarOnly) {
  const std::string line = draw_training(kStatus, 100, true);
  EXPECT_THAT(line, testing::HasSubstr("\x1b[32m["));
  EXPECT_THAT(line, testing::HasSubstr("]\x1b[0m"));
  EXPECT_EQ(draw_training(kStatus, 100, false).find('\x1b'), std::string::npos);
}

TEST(DrawTraining, LeavesOutAShareThatIsNotKnown) {
  TrainingStatus status = kStatus;
  status.product_rate = 0;
  EXPECT_THAT(draw_training(status, 120, false), testing::HasSubstr("GFLOP/s  312 MB"));
}

TEST(DrawTraining, CountsInTeraOnAGpu) {
  TrainingStatus status = kStatus;
  status.flops_per_second = 522.4e12;
  status.product_rate = 700e12;
  EXPECT_THAT(draw_training(status, 120, false), testing::HasSubstr("522.4 TFLOP/s (75 %)"));
}

TEST(LogTraining, HasAllOfItWithTheLearningRate) {
  EXPECT_EQ(log_training(kStatus),
            "step 120/1,000   12 %  loss 6.123  lr 0.00125  3 min 12 s left  12,345 tokens/s  45.1 GFLOP/s "
            "(62 %)  312 MB");
}

TEST(DescribeRun, SaysWhatHolds) {
  train::RunSummary summary;
  summary.num_steps = 1000;
  summary.steps_per_epoch = 312;
  summary.model_name = "bert-tiny";
  summary.model.num_layers = 2;
  summary.model.width = 128;
  summary.num_parameters = 4'385'664;
  summary.expected_tokens_per_step = 8192;
  summary.learning_rate = 1.6e-3;
  summary.warmup_steps = 60;
  summary.learning_rate_schedule = "linear";
  summary.num_ranks = summary.threads_per_rank = summary.micro_batches_per_rank = 1;
  summary.memory.planned_bytes = 312'000'000;
  summary.checkpoints = "run/checkpoints";
  summary.checkpoint_times = "every 10min and at the end";
  const std::string text = describe_run(summary);
  EXPECT_EQ(text,
            "model: bert-tiny, 4,385,664 parameters, 2 layers of width 128\n"
            "steps: 1,000 of about 8,192 tokens, 3.21 epochs of 312 steps\n"
            "learning rate: 0.0016 after 60 steps of warmup, then linear\n"
            "device: 1 rank of 1 thread, 1 micro-batch each; 312 MB planned\n"
            "checkpoints: run/checkpoints, every 10min and at the end");
  summary.evaluation_times = "every 100 steps and at the end";
  EXPECT_EQ(describe_run(summary), text + "\nevaluations: every 100 steps and at the end");
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
