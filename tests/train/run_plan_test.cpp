#include "plenum/train/run_plan.h"

#include <regex>

#include "plenum/tensor/cuda_device.h"
#include "plenum/train/starting_model.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

class RunPlanTest : public TrainingTest {
 protected:
  std::string memory_error(const RunOptions& given, std::uint64_t available_bytes) const {
    const data::Dataset dataset(dataset_);
    const RunPlan plan(given, dataset, starting_model(given.model, dataset));
    return test::user_error_of([&] { plan.require_memory(available_bytes); });
  }
  std::uint64_t planned_bytes(const RunOptions& given) const {
    const data::Dataset dataset(dataset_);
    return RunPlan(given, dataset, starting_model(given.model, dataset)).memory().planned_bytes;
  }

  /// With heads as wide as a GPU wants them.
  RunOptions gpu_options() const {
    RunOptions given = options("run");
    given.run.device = tensor::Device::Cuda;
    given.model.width = 128;
    return given;
  }
  void expect_that_it_names_what_fits(RunOptions given) const;
};

void RunPlanTest::expect_that_it_names_what_fits(RunOptions given) const {
  given.data.global_batch = "100";
  given.data.micro_batch_tokens = 1000;
  RunOptions smaller = given;
  smaller.data.micro_batch_tokens = 300;
  const std::uint64_t available = planned_bytes(smaller);
  ASSERT_LT(available, planned_bytes(given));
  const std::string error = memory_error(given, available);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(error, match, std::regex("--micro-batch-tokens ([0-9]+) would fit")))
      << error;
  const std::int64_t fits = std::stoll(match[1]);
  EXPECT_GE(fits, 300);
  smaller.data.micro_batch_tokens = fits;
  EXPECT_EQ(memory_error(smaller, available), "no error");
}

TEST_F(RunPlanTest, NamesTheLargestMicroBatchThatFits) {
  expect_that_it_names_what_fits(options("run"));
}

TEST_F(RunPlanTest, NamesTheLargestMicroBatchThatFitsIntoAGpu) {
  if (!tensor::is_cuda_built()) GTEST_SKIP() << *tensor::cuda_obstacle();
  RunOptions given = gpu_options();
  expect_that_it_names_what_fits(given);

  // No time goes into what is refused, however large.
  given.model.layers = 1 << 12;
  given.model.mlp_width = 1 << 22;
  EXPECT_THAT(memory_error(given, 1 << 30), testing::HasSubstr("no --micro-batch-tokens would fit"));
}

TEST_F(RunPlanTest, SaysWhenNoMicroBatchFits) {
  EXPECT_THAT(memory_error(options("run"), 1000), testing::HasSubstr("no --micro-batch-tokens would fit"));
}

TEST_F(RunPlanTest, NamesTheGpuWhoseMemoryIsShort) {
  if (!tensor::is_cuda_built()) GTEST_SKIP() << *tensor::cuda_obstacle();
  RunOptions given = gpu_options();
  EXPECT_THAT(memory_error(given, 1000), testing::HasSubstr("and the GPU has 1.0 kB left; no "
                                                            "--micro-batch-tokens would fit: train a "
                                                            "smaller model, and --recompute full"));
}

TEST_F(RunPlanTest, RefusesShapesThatAGpuHasNoKernelsFor) {
  if (!tensor::is_cuda_built()) GTEST_SKIP() << *tensor::cuda_obstacle();
  RunOptions wide = gpu_options();
  wide.model.width = 8192;
  wide.model.heads = 64;
  EXPECT_THAT(memory_error(wide, 1), testing::HasSubstr("on the GPU a model has a width of at most 4096"));
  RunOptions odd = gpu_options();
  odd.model.mlp_width = 260;
  EXPECT_THAT(memory_error(odd, 1), testing::HasSubstr("the width of the MLP must be a multiple of 8"));
}

TEST_F(RunPlanTest, CountsEvaluationOnTheGpuToo) {
  if (!tensor::is_cuda_built()) GTEST_SKIP() << *tensor::cuda_obstacle();
  RunOptions given = gpu_options();
  const data::Dataset dataset(dataset_);
  const RunPlan plan(given, dataset, starting_model(given.model, dataset));
  const std::size_t training =
      pipeline::BertProgram::plan_memory(plan.schedule(), schedule::Rank{0}, plan.program()).num_bytes();
  const MemoryReport memory = plan.memory();
  EXPECT_EQ(memory.device, tensor::Device::Cuda);
  EXPECT_EQ(memory.lines.back().purpose, "evaluation");
  EXPECT_EQ(memory.planned_bytes, training + memory.lines.back().bytes);
}

TEST_F(RunPlanTest, CountsDurationsInEpochs) {
  RunOptions given = options("run");
  given.run.steps = {3, optim::DurationUnit::Epochs};
  given.checkpoint.every = {0.5, optim::DurationUnit::Run};
  const data::Dataset dataset(dataset_);
  const RunPlan plan(given, dataset, starting_model(given.model, dataset));
  EXPECT_EQ(plan.num_steps(), 3 * plan.batches().steps_per_epoch());
  EXPECT_EQ(plan.checkpoint_every(), (plan.num_steps() + 1) / 2);
}

}  // namespace
}  // namespace plenum::train
