#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/tensor/cuda_device.h"

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

using test::ProgramResult;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(TrainingProgram, SaysInOneLineThatThereIsNoGpu) {
  const auto obstacle = tensor::cuda_obstacle();
  if (!obstacle) GTEST_SKIP() << "there is a GPU";
  ASSERT_EQ(plenum(train_arguments("run", 2) + " --quiet").exit_code, 0);
  for (const std::string& arguments :
       {train_arguments("other", 2) + " --quiet", std::string("eval run --data data"),
        std::string("fill-mask --model run \"the [MASK]\"")}) {
    const ProgramResult result = plenum(arguments + " --device cuda");
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.errors, StartsWith("plenum: error: no GPU can be used: ")) << arguments;
    EXPECT_THAT(result.errors, HasSubstr(*obstacle)) << arguments;
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  }
}

TEST(Doctor, WorksWithAndWithoutAGpu) {
  const ProgramResult result = test::run_program("doctor");
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, AllOf(HasSubstr("CUDA"), HasSubstr("GPU")));
  EXPECT_EQ(result.errors, "");
}

}  // namespace
}  // namespace plenum::cli
