#include "plenum/kernels/linear.h"

#include <fmt/format.h>

#include "tests/ops/op_testing.h"
#include "tests/reference/activation.h"
#include "tests/reference/linear.h"

namespace plenum::ops {
namespace {

using kernels::Accumulate;
using kernels::linear_backward_input;
using kernels::linear_backward_weight;
using kernels::linear_forward;

/// A linear map with random arguments and gradients that are not zero at first.
struct Linear {
  std::int64_t T, D, E;
  TestTensor<float> x_TD = random_tensor({T, D}, 1);
  TestTensor<float> w_ED = random_tensor({E, D}, 2, 0.5);
  TestTensor<float> b_E = random_tensor({E}, 3);
  TestTensor<float> dy_TE = random_tensor({T, E}, 4);
  TestTensor<float> gelu_input_TD = random_tensor({T, D}, 5, 3);
  TestTensor<float> y_TE = random_tensor({T, E}, 6);
  TestTensor<float> gelu_TE = random_tensor({T, E}, 7);
  TestTensor<float> dx_TD = random_tensor({T, D}, 8);
  TestTensor<float> dw_ED = random_tensor({E, D}, 9);
  TestTensor<float> db_E = random_tensor({E}, 10);

  reference::LinearShape shape() const {
    return {static_cast<std::size_t>(T), static_cast<std::size_t>(D), static_cast<std::size_t>(E)};
  }
  std::string name() const { return fmt::format("T={} D={} E={}", T, D, E); }
  std::vector<double> expected_y() const {
    return reference::linear(shape(), x_TD.doubles(), w_ED.doubles(), b_E.doubles());
  }

  void run_all(const OpContext& context) {
    linear_forward(context.stream(),
                   {.x_TD = x_TD, .w_ED = w_ED, .b_E = b_E, .y_TE = y_TE, .gelu_TE = gelu_TE});
    linear_backward_input(context.stream(),
                          {.dy_TE = dy_TE, .w_ED = w_ED, .gelu_input_TD = gelu_input_TD, .dx_TD = dx_TD});
    linear_backward_weight(context.stream(), {.x_TD = x_TD, .dy_TE = dy_TE, .dw_ED = dw_ED, .db_E = db_E});
  }
};

std::vector<Linear> shapes() {
  return {{1, 1, 1}, {1, 40, 3}, {5, 8, 16}, {37, 67, 19}, {130, 20, 70}, {64, 256, 64}, {7, 600, 130}};
}

TEST(LinearForward, IsProductPlusBias) {
  const OpContext context;
  for (Linear& linear : shapes()) {
    linear_forward(context.stream(),
                   {.x_TD = linear.x_TD, .w_ED = linear.w_ED, .b_E = linear.b_E, .y_TE = linear.y_TE});
    expect_near(linear.y_TE, linear.expected_y(), linear.name());
  }
}

TEST(LinearForward, BiasMayBeLeftOut) {
  const OpContext context;
  for (Linear& linear : shapes()) {
    linear_forward(context.stream(), {.x_TD = linear.x_TD, .w_ED = linear.w_ED, .y_TE = linear.y_TE});
    expect_near(linear.y_TE,
                reference::linear(linear.shape(), linear.x_TD.doubles(), linear.w_ED.doubles(), {}),
                linear.name());
  }
}

TEST(LinearForward, GivesGeluBesideItsInput) {
  const OpContext context;
  for (Linear& linear : shapes()) {
    std::vector<double> gelu = linear.expected_y();
    for (double& value : gelu) value = reference::gelu(value);
    linear.run_all(context);
    expect_near(linear.y_TE, linear.expected_y(), linear.name());
    expect_near(linear.gelu_TE, gelu, linear.name() + " gelu");

    linear_forward(context.stream(), {.x_TD = linear.x_TD,
                                      .w_ED = linear.w_ED,
                                      .b_E = linear.b_E,
                                      .y_TE = linear.y_TE,
                                      .gelu_TE = linear.y_TE});
    EXPECT_EQ(linear.y_TE, linear.gelu_TE) << linear.name() << ": in place";
  }
}

TEST(LinearBackwardInput, IsGradientOfForward) {
  const OpContext context;
  Linear linear = {3, 5, 7};
  const auto loss = [&](const std::vector<double>& x_TD) {
    return dot(reference::linear(linear.shape(), x_TD, linear.w_ED.doubles(), {}), linear.dy_TE.doubles());
  };
  linear_backward_input(context.stream(),
                        {.dy_TE = linear.dy_TE, .w_ED = linear.w_ED, .dx_TD = linear.dx_TD});
  expect_near(linear.dx_TD, numeric_gradient(linear.x_TD.doubles(), loss), "dx", kGradientRelative);
}

TEST(LinearBackwardInput, OverwritesOrAccumulates) {
  const OpContext context;
  for (Linear& linear : shapes()) {
    const std::vector<double> dx_TD =
        reference::linear_dx(linear.shape(), linear.dy_TE.doubles(), linear.w_ED.doubles());
    const std::vector<double> sum_TD = plus(linear.dx_TD.doubles(), dx_TD);
    linear_backward_input(
        context.stream(),
        {.dy_TE = linear.dy_TE, .w_ED = linear.w_ED, .dx_TD = linear.dx_TD, .accumulate = Accumulate::Yes});
    expect_near(linear.dx_TD, sum_TD, linear.name() + " added");
    linear_backward_input(context.stream(),
                          {.dy_TE = linear.dy_TE, .w_ED = linear.w_ED, .dx_TD = linear.dx_TD});
    expect_near(linear.dx_TD, dx_TD, linear.name());
  }
}

TEST(LinearBackwardInput, PassesThroughGelu) {
  const OpContext context;
  Linear linear = {3, 5, 7};
  const auto loss = [&](std::vector<double> z_TD) {
    for (double& value : z_TD) value = reference::gelu(value);
    return dot(reference::linear(linear.shape(), z_TD, linear.w_ED.doubles(), {}), linear.dy_TE.doubles());
  };
  linear.run_all(context);
  expect_near(linear.dx_TD, numeric_gradient(linear.gelu_input_TD.doubles(), loss), "dz", kGradientRelative);
}

TEST(LinearBackwardWeight, AccumulatesGradientsOfForward) {
  const OpContext context;
  Linear linear = {3, 5, 7};
  const auto loss_of_w = [&](const std::vector<double>& w_ED) {
    return dot(reference::linear(linear.shape(), linear.x_TD.doubles(), w_ED, {}), linear.dy_TE.doubles());
  };
  const auto loss_of_b = [&](const std::vector<double>& b_E) {
    return dot(reference::linear(linear.shape(), linear.x_TD.doubles(), linear.w_ED.doubles(), b_E),
               linear.dy_TE.doubles());
  };
  const std::vector<double> dw_ED =
      plus(linear.dw_ED.doubles(), numeric_gradient(linear.w_ED.doubles(), loss_of_w));
  const std::vector<double> db_E =
      plus(linear.db_E.doubles(), numeric_gradient(linear.b_E.doubles(), loss_of_b));
  linear.run_all(context);
  expect_near(linear.dw_ED, dw_ED, "dw", kGradientRelative);
  expect_near(linear.db_E, db_E, "db", kGradientRelative);
}

TEST(LinearBackwardWeight, AccumulatesForEveryShape) {
  const OpContext context;
  for (Linear& linear : shapes()) {
    const std::vector<double> dw_ED =
        plus(linear.dw_ED.doubles(),
             reference::linear_dw(linear.shape(), linear.x_TD.doubles(), linear.dy_TE.doubles()));
    const std::vector<double> db_E =
        plus(linear.db_E.doubles(), reference::linear_db(linear.shape(), linear.dy_TE.doubles()));
    linear.run_all(context);
    expect_near(linear.dw_ED, dw_ED, linear.name() + " dw");
    expect_near(linear.db_E, db_E, linear.name() + " db");
  }
}

TEST(Linear, WithoutRowsChangesNoGradient) {
  const OpContext context;
  Linear linear = {0, 5, 7};
  const Linear before = linear;
  linear.run_all(context);
  EXPECT_EQ(linear.dw_ED, before.dw_ED);
  EXPECT_EQ(linear.db_E, before.db_E);
}

TEST(Linear, ThreadsAndRepetitionDoNotChangeABit) {
  Linear once = {300, 70, 530};
  Linear twice = once;
  Linear together = once;
  const OpContext one(1);
  const OpContext three(3);
  once.run_all(one);
  twice.run_all(one);
  together.run_all(three);
  for (const Linear* other : {&twice, &together}) {
    EXPECT_EQ(once.y_TE, other->y_TE);
    EXPECT_EQ(once.gelu_TE, other->gelu_TE);
    EXPECT_EQ(once.dx_TD, other->dx_TD);
    EXPECT_EQ(once.dw_ED, other->dw_ED);
    EXPECT_EQ(once.db_E, other->db_E);
  }
}

TEST(Linear, ScratchIsAsLargeAsAskedFor) {
  const OpContext context(2, kernels::linear_scratch_bytes(tensor::Device::Cpu));
  Linear linear = {64, 64, 64};
  linear.run_all(context);
  expect_near(linear.y_TE, linear.expected_y(), "y");
}

TEST(Linear, RefusesShapesThatDoNotFit) {
  const OpContext context;
  Linear linear = {4, 5, 7};
  TestTensor<float> narrow({4, 6});
  EXPECT_THROW(linear_forward(context.stream(), {.x_TD = linear.x_TD, .w_ED = linear.w_ED, .y_TE = narrow}),
               base::InternalError);
  EXPECT_THROW(linear_backward_input(context.stream(), {.dy_TE = linear.dy_TE,
                                                        .w_ED = linear.w_ED,
                                                        .gelu_input_TD = linear.gelu_input_TD,
                                                        .dx_TD = linear.dx_TD,
                                                        .accumulate = Accumulate::Yes}),
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
