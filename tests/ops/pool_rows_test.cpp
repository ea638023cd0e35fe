#include "plenum/kernels/pool_rows.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

using kernels::pool_rows;
using kernels::UnitLength;

class PoolRows : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, PoolRows, kDevices, device_of);

TEST_P(PoolRows, LeavesAVectorOfZerosAsItIs) {
  const OpContext context(device());
  for (const std::int64_t width : {3, 64}) {
    Arguments arguments(context);
    const TestTensor<std::int32_t> group({2}, {0, 0});
    const TestTensor<float> x({2, width}, 0.0F);
    TestTensor<float> y({1, width}, NAN);
    pool_rows(context.stream(), {.x_RD = arguments.in_compute(x),
                                 .group_R = arguments.in(group),
                                 .unit_length = UnitLength::Yes,
                                 .y_SD = arguments.out(y)});
    arguments.fetch();
    for (const float value : y.values()) EXPECT_EQ(value, 0);
  }
}

TEST_P(PoolRows, GivesARowThatIsAloneToTheBit) {
  const OpContext context(device());
  Arguments arguments(context);
  const TestTensor<std::int32_t> group({4}, {0, 1, 2, -1});
  const TestTensor<float> x = rounded(random_tensor({4, 24}, 5), device());
  TestTensor<float> y({3, 24}, NAN);
  pool_rows(context.stream(),
            {.x_RD = arguments.in_compute(x), .group_R = arguments.in(group), .y_SD = arguments.out(y)});
  arguments.fetch();
  EXPECT_TRUE(std::equal(y.values().begin(), y.values().end(), x.values().begin()));
}

TEST(PoolRowsOnTheHost, RefusesGroupsThatLieApartOrAreMissing) {
  const OpContext context;
  const TestTensor<float> x({3, 2});
  TestTensor<float> y({2, 2});
  for (const std::vector<std::int32_t>& groups :
       {std::vector{0, 1, 0}, std::vector{0, 0, 0}, std::vector{0, 1, 2}, std::vector{1, 1, 1},
        std::vector{0, -1, 1}, std::vector{0, 0, 2}}) {
    const TestTensor<std::int32_t> group({3}, groups);
    EXPECT_THROW(pool_rows(context.stream(), {.x_RD = x, .group_R = group, .y_SD = y}), base::InternalError)
        << groups[0] << groups[1] << groups[2];
  }
}

}  // namespace
}  // namespace plenum::ops
