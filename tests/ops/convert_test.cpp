#include "plenum/kernels/convert.h"

#include <limits>

#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

TEST(RoundToCompute, RoundsHalfToEvenAndKeepsWhatIsNotFinite) {
  if (const auto obstacle = tensor::cuda_obstacle()) GTEST_SKIP() << *obstacle;
  TestTensor<float> x = random_tensor({9}, 1, 1e3);
  x.values()[1] = 0x1.01p0F;  // half-way, to the even one below
  x.values()[2] = 0x1.03p0F;  // half-way, to the even one above
  x.values()[3] = -std::numeric_limits<float>::infinity();
  x.values()[4] = 0x1.0p-133F;  // of what has no leading bit, the smallest
  TestTensor<float> y({9}, 5.0F);
  const OpContext context(tensor::Device::Cuda);
  Arguments arguments(context);
  kernels::round_to_compute(context.stream(), {.x_N = arguments.in(x), .y_N = arguments.out_compute(y)});
  arguments.fetch();
  EXPECT_EQ(y, rounded(x, tensor::Device::Cuda));
}

TEST(RoundToCompute, IsNotForTheCpu) {
  const TestTensor<float> x({4});
  std::vector<tensor::BFloat16> y(4);
  const OpContext context;
  EXPECT_THROW(kernels::round_to_compute(context.stream(), {.x_N = x.view(), .y_N = {y.data(), {4}}}),
               base::InternalError);
}

TEST(WidenFromCompute, KeepsEveryValue) {
  if (const auto obstacle = tensor::cuda_obstacle()) GTEST_SKIP() << *obstacle;
  TestTensor<float> x = rounded(random_tensor({1037}, 1, 1e3), tensor::Device::Cuda);
  x.values()[3] = -std::numeric_limits<float>::infinity();
  TestTensor<float> y({1037}, 5.0F);
  const OpContext context(tensor::Device::Cuda);
  Arguments arguments(context);
  kernels::widen_from_compute(context.stream(), {.x_N = arguments.in_compute(x), .y_N = arguments.out(y)});
  arguments.fetch();
  EXPECT_EQ(y, x);
}

}  // namespace
}  // namespace plenum::ops
