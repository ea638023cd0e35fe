#include "plenum/kernels/rows.h"

#include <gtest/gtest.h>

#include "tests/ops/op_testing.h"
#include "tests/reference/rows.h"

namespace plenum::kernels {
namespace {

using ops::OpContext;
using ops::TestTensor;

struct RowsCase {
  std::int64_t rows;
  std::int64_t width;
  std::vector<std::int32_t> index;

  std::int64_t num_indices() const { return static_cast<std::int64_t>(index.size()); }
};

const std::vector<RowsCase> kCases = {
    {1, 1, {0}}, {5, 7, {4, 0, 2}}, {3, 16, {}}, {40, 19, {1, 39, 20, 21, 0}}};

TEST(GatherRowsForward, AgreesWithTheReference) {
  for (const RowsCase& c : kCases) {
    const OpContext context(2);
    const TestTensor<float> x = ops::random_tensor({c.rows, c.width}, 1);
    const TestTensor<std::int32_t> index({c.num_indices()}, c.index);
    TestTensor<float> y({c.num_indices(), c.width}, 3.0F);
    gather_rows_forward(context.stream(), {.x_TD = x, .index_M = index, .y_MD = y});
    ops::expect_near(y, reference::gather_rows(x.doubles(), c.index, static_cast<std::size_t>(c.width)), "y",
                     0);
  }
}

TEST(GatherRowsBackward, AccumulatesIntoExistingGradient) {
  for (const RowsCase& c : kCases) {
    const OpContext context(2);
    const TestTensor<float> dy = ops::random_tensor({c.num_indices(), c.width}, 2);
    const TestTensor<std::int32_t> index({c.num_indices()}, c.index);
    const TestTensor<float> before = ops::random_tensor({c.rows, c.width}, 3);
    TestTensor<float> dx = before;
    gather_rows_backward(context.stream(), {.dy_MD = dy, .index_M = index, .dx_TD = dx});
    const auto gradient = ops::numeric_gradient(before.doubles(), [&](const std::vector<double>& x) {
      return ops::dot(reference::gather_rows(x, c.index, static_cast<std::size_t>(c.width)), dy.doubles());
    });
    ops::expect_near(dx, ops::plus(before.doubles(), gradient), "dx");
  }
}

TEST(GatherRows, TakesMinusOneForNoRow) {
  const OpContext context;
  const TestTensor<float> x = ops::random_tensor({2, 3}, 1);
  const TestTensor<std::int32_t> index({3}, {-1, 1, -1});
  TestTensor<float> y({3, 3}, 9.0F);
  gather_rows_forward(context.stream(), {.x_TD = x, .index_M = index, .y_MD = y});
  const std::vector<float>& from = x.values();
  EXPECT_EQ(y.values(), (std::vector<float>{0, 0, 0, from[3], from[4], from[5], 0, 0, 0}));
  TestTensor<float> dx({2, 3}, 1.0F);
  gather_rows_backward(context.stream(),
                       {.dy_MD = TestTensor<float>({3, 3}, 2.0F), .index_M = index, .dx_TD = dx});
  EXPECT_EQ(dx.values(), (std::vector<float>{1, 1, 1, 3, 3, 3}));
}

TEST(GatherRows, RefusesAnIndexOutside) {
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
}  // namespace plenum::kernels
