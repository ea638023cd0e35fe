#include "plenum/kernels/linear.h"

#include <gtest/gtest.h>

#include "tests/ops/op_testing.h"

namespace plenum::ops {
namespace {

using kernels::linear_backward_input;
using kernels::linear_backward_weight;
using kernels::linear_forward;

struct Linear {
  std::int64_t T, D, E;
  TestTensor<float> x_TD{{T, D}}, w_ED{{E, D}}, dy_TE{{T, E}}, y_TE{{T, E}}, dx_TD{{T, D}};
};

TEST(Linear, RefusesShapesThatDoNotFit) {
  const OpContext context;
  Linear linear = {4, 5, 7};
  TestTensor<float> narrow({4, 6});
  EXPECT_THROW(linear_forward(context.stream(), {.x_TD = linear.x_TD, .w_ED = linear.w_ED, .y_TE = narrow}),
               base::InternalError);
}

TEST(Linear, RefusesArgumentsThatAreLeftOut) {
  const OpContext context;
  Linear linear = {4, 5, 7};
  const tensor::TensorView nowhere_45(static_cast<float*>(nullptr), {4, 5});
  const tensor::TensorView nowhere_75(static_cast<float*>(nullptr), {7, 5});
  EXPECT_THROW(
      linear_forward(context.stream(), {.x_TD = nowhere_45, .w_ED = linear.w_ED, .y_TE = linear.y_TE}),
      base::InternalError);
  EXPECT_THROW(linear_backward_input(context.stream(),
                                     {.dy_TE = linear.dy_TE, .w_ED = nowhere_75, .dx_TD = linear.dx_TD}),
               base::InternalError);
  EXPECT_THROW(linear_backward_weight(context.stream(),
                                      {.x_TD = linear.x_TD, .dy_TE = linear.dy_TE, .dw_ED = nowhere_75}),
               base::InternalError);
}

}  // namespace
}  // namespace plenum::ops
