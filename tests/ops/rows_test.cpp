#include "plenum/kernels/rows.h"

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"
#include "tests/reference/rows.h"

namespace plenum::ops {
namespace {

using kernels::gather_rows_backward;
using kernels::gather_rows_forward;

struct RowsCase {
  std::int64_t rows;
  std::int64_t width;
  std::vector<std::int32_t> index;

  std::int64_t num_indices() const { return static_cast<std::int64_t>(index.size()); }
};

const std::vector<RowsCase> kCases = {{1, 1, {0}},
                                      {5, 7, {4, 0, 2}},
                                      {3, 16, {}},
                                      {40, 19, {1, 39, 20, 21, 0}},
                                      {9, 2, {3, 8, 1, 0, 7, 2}},
                                      {6, 1032, {5, -1, 0, 3, -1, 1}}};

std::vector<double> gathered(const RowsCase& c, const std::vector<double>& x) {
  return reference::gather_rows(x, c.index, static_cast<std::size_t>(c.width));
}

class GatherRowsForward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, GatherRowsForward, kDevices, device_of);
class GatherRowsBackward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, GatherRowsBackward, kDevices, device_of);

TEST_P(GatherRowsForward, AgreesWithTheReference) {
  for (const RowsCase& c : kCases) {
    const OpContext context(device());
    Arguments arguments(context);
    const TestTensor<float> x = rounded(random_tensor({c.rows, c.width}, 1), device());
    const TestTensor<std::int32_t> index({c.num_indices()}, c.index);
    TestTensor<float> y({c.num_indices(), c.width}, 3.0F);
    gather_rows_forward(
        context.stream(),
        {.x_TD = arguments.in_compute(x), .index_M = arguments.in(index), .y_MD = arguments.out_compute(y)});
    arguments.fetch();
    expect_near(y, gathered(c, x.doubles()), "y", 0);
  }
}

TEST_P(GatherRowsBackward, AccumulatesIntoExistingGradient) {
  for (const RowsCase& c : kCases) {
    if (c.rows * c.width > 1000) continue;  // differences take long
    const OpContext context(device());
    Arguments arguments(context);
    const TestTensor<float> dy = rounded(random_tensor({c.num_indices(), c.width}, 2), device());
    const TestTensor<std::int32_t> index({c.num_indices()}, c.index);
    const TestTensor<float> before = rounded(random_tensor({c.rows, c.width}, 3), device());
    TestTensor<float> dx = before;
    gather_rows_backward(context.stream(), {.dy_MD = arguments.in_compute(dy),
                                            .index_M = arguments.in(index),
                                            .dx_TD = arguments.out_compute(dx)});
    arguments.fetch();
    const auto gradient = numeric_gradient(
        before.doubles(), [&](const std::vector<double>& x) { return dot(gathered(c, x), dy.doubles()); });
    expect_near(dx, plus(before.doubles(), gradient), "dx", compute_tolerance(device()));
  }
}

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
