#include "plenum/kernels/sum.h"

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

class AddSumOn : public OnDevice {
 protected:
  /// `before` and the sum of all elements.
  static double sum_of(const TestTensor<float>& x_N, double before) {
    const OpContext context(device());
    Arguments arguments(context);
    TestTensor<double> sum_1({1}, before);
    kernels::add_sum(context.stream(), {.x_N = arguments.in(x_N), .sum_1 = arguments.out(sum_1)});
    arguments.fetch();
    return sum_1.values()[0];
  }
};
INSTANTIATE_TEST_SUITE_P(Sum, AddSumOn, kDevices, device_of);

TEST_P(AddSumOn, KeepsSmallTermsBesideLargeOnes) {
  TestTensor<float> x_N({3000}, 1.0F);
  x_N.values()[0] = 1e9F;
  x_N.values()[2999] = -1e9F;
  EXPECT_EQ(sum_of(x_N, 0), 2998);
}

}  // namespace
}  // namespace plenum::ops
