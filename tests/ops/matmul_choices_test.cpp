#include "plenum/kernels/matmul_choices.h"

#include "plenum/kernels/linear.h"

#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

using kernels::matmul_choices;
using kernels::MatmulChoices;
using kernels::use_matmul_choices;
using tensor::Device;

/// A stream of the GPU, and a product large enough that several algorithms suit it.
class MatmulChoicesOfGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto obstacle = tensor::cuda_obstacle()) GTEST_SKIP() << *obstacle;
  }

  static OpContext new_context() {
    return OpContext(Device::Cuda, kernels::linear_scratch_bytes(Device::Cuda));
  }
  /// The gradient of a weight of `D` columns.
  static TestTensor<float> gradient(const OpContext& context, std::int64_t D = 256) {
    const TestTensor<float> x_TD = random_tensor({16384, D}, 1);
    const TestTensor<float> dy_TE = random_tensor({16384, 128}, 2);
    TestTensor<float> dw_ED = random_tensor({128, D}, 3);
    Arguments arguments(context);
    kernels::linear_backward_weight(context.stream(), {.x_TD = arguments.in_compute(x_TD),
                                                       .dy_TE = arguments.in_compute(dy_TE),
                                                       .dw_ED = arguments.out(dw_ED)});
    arguments.fetch();
    return dw_ED;
  }
};

TEST(MatmulChoices, CpuHasNone) {
  const OpContext context;
  EXPECT_EQ(matmul_choices(context.stream()), MatmulChoices{});
  EXPECT_TRUE(use_matmul_choices(context.stream(), {}));
}

TEST_F(MatmulChoicesOfGpu, AreMadeOncePerKindOfProduct) {
  const OpContext context = new_context();
  EXPECT_TRUE(matmul_choices(context.stream()).algorithms.empty());
  gradient(context);
  const MatmulChoices one = matmul_choices(context.stream());
  EXPECT_EQ(one.algorithms.size(), 1U);
  gradient(context);
  EXPECT_EQ(matmul_choices(context.stream()), one);
  gradient(context, 512);
  EXPECT_EQ(matmul_choices(context.stream()).algorithms.size(), 2U);
}

TEST_F(MatmulChoicesOfGpu, ChangeNoBit) {
  const OpContext first = new_context();
  const OpContext second = new_context();
  EXPECT_EQ(gradient(first), gradient(second)) << "measured twice";
}

TEST_F(MatmulChoicesOfGpu, GiveTheSameBytesInAnotherStream) {
  const OpContext first = new_context();
  const TestTensor<float> expected = gradient(first);
  const OpContext second = new_context();
  EXPECT_TRUE(use_matmul_choices(second.stream(), matmul_choices(first.stream())));
  EXPECT_EQ(gradient(second), expected);
  EXPECT_EQ(matmul_choices(second.stream()), matmul_choices(first.stream()));
}

TEST_F(MatmulChoicesOfGpu, OfAnotherMachineAreLeftAside) {
  const OpContext first = new_context();
  gradient(first);
  MatmulChoices choices = matmul_choices(first.stream());
  choices.measured_with = "cuBLASLt 1 on another GPU";
  const OpContext second = new_context();
  EXPECT_FALSE(use_matmul_choices(second.stream(), choices));
  EXPECT_TRUE(matmul_choices(second.stream()).algorithms.empty());
}

TEST_F(MatmulChoicesOfGpu, ThatAreDamagedAreRefused) {
  const OpContext first = new_context();
  gradient(first);
  MatmulChoices choices = matmul_choices(first.stream());
  choices.algorithms.begin()->second = "0123";
  const OpContext second = new_context();
  EXPECT_THROW(use_matmul_choices(second.stream(), choices), base::UserError);
}

}  // namespace
}  // namespace plenum::ops
