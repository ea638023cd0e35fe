#include "plenum/kernels/rows.h"

#include <array>

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

using kernels::gather_rows_backward;
using kernels::gather_rows_forward;

class GatherRowsBackward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, GatherRowsBackward, kDevices, device_of);

TEST_P(GatherRowsBackward, AddsNothingForNoRow) {
  const OpContext context(device());
  for (const std::int64_t width : {3, 1032}) {
    Arguments arguments(context);
    const TestTensor<std::int32_t> index({3}, {-1, 1, -1});
    const TestTensor<float> dy({3, width}, 2.0F);
    TestTensor<float> dx({2, width}, 1.0F);
    gather_rows_backward(context.stream(), {.dy_MD = arguments.in_compute(dy),
                                            .index_M = arguments.in(index),
                                            .dx_TD = arguments.out_compute(dx)});
    arguments.fetch();
    for (std::int64_t i = 0; i < 2 * width; ++i) {
      ASSERT_EQ(dx.values()[static_cast<std::size_t>(i)], i < width ? 1 : 3) << i;
    }
  }
}

class GatherRowsForward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, GatherRowsForward, kDevices, device_of);

TEST_P(GatherRowsForward, GivesZeroForRowsThatLieInAnotherSlice) {
  const OpContext context(device());
  for (const std::int64_t width : {3, 1032}) {
    Arguments arguments(context);
    const TestTensor<std::int32_t> index({6}, {4, 5, -1, 7, 8, 0});
    TestTensor<float> x({3, width}, 2.0F);
    std::fill_n(x.values().begin() + width, width, 3.0F);
    TestTensor<float> y({6, width}, 7.0F);
    gather_rows_forward(context.stream(), {.x_TD = arguments.in_compute(x),
                                           .index_M = arguments.in(index),
                                           .slice = {.first = 5, .whole = 9},
                                           .y_MD = arguments.out_compute(y)});
    arguments.fetch();
    constexpr std::array<float, 6> kExpected = {0, 2, 0, 2, 0, 0};
    for (std::int64_t i = 0; i < 6 * width; ++i) {
      ASSERT_EQ(y.values()[static_cast<std::size_t>(i)], kExpected[static_cast<std::size_t>(i / width)]) << i;
    }
  }
}

TEST(GatherRowsOnTheHost, RefusesAnIndexOutside) {
  const OpContext context;
  const TestTensor<float> x({2, 3});
  TestTensor<float> y({1, 3});
  for (const std::int32_t row : {-2, 2}) {
    const TestTensor<std::int32_t> index({1}, row);
    EXPECT_THROW(gather_rows_forward(context.stream(), {.x_TD = x, .index_M = index, .y_MD = y}),
                 base::InternalError);
  }
}

}  // namespace
}  // namespace plenum::ops
