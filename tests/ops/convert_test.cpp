#include "plenum/kernels/convert.h"

#include <limits>

#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

TEST(RoundToCompute, RoundsToTheNearest) {
  if (const auto obstacle = tensor::cuda_obstacle()) GTEST_SKIP() << *obstacle;
  for (const std::int64_t count : {0, 1, 7, 8, 9, 5003}) {
    TestTensor<float> x = random_tensor({count}, 1, 1e3);
    if (count > 8) {
      x.values()[1] = 0x1.01p0F;  // half-way, to the even one below
      x.values()[2] = 0x1.03p0F;  // half-way, to the even one above
      x.values()[3] = -std::numeric_limits<float>::infinity();
      x.values()[4] = 0x1.0p-133F;  // of what has no leading bit, the smallest
    }
    TestTensor<float> y({count}, 5.0F);
    const OpContext context(tensor::Device::Cuda);
    Arguments arguments(context);
    kernels::round_to_compute(context.stream(), {.x_N = arguments.in(x), .y_N = arguments.out_compute(y)});
    arguments.fetch();
    EXPECT_EQ(y, rounded(x, tensor::Device::Cuda)) << count;
  }
}

TEST(RoundToCompute, IsNotForTheCpu) {
  const TestTensor<float> x({4});
  std::vector<tensor::BFloat16> y(4);
  const OpContext context;
  EXPECT_THROW(kernels::round_to_compute(context.stream(), {.x_N = x.view(), .y_N = {y.data(), {4}}}),
               base::InternalError);
}

}  // namespace
}  // namespace plenum::ops
