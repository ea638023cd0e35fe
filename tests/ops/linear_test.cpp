#include "plenum/kernels/linear.h"

#include <fmt/format.h>

#include "tests/ops/op_device.h"
#include "tests/reference/linear.h"

namespace plenum::ops {
namespace {

using kernels::Accumulate;
using kernels::linear_backward_input;
using kernels::linear_backward_weight;
using kernels::linear_forward;
using tensor::Device;

OpContext context_of(Device device) {
  return OpContext(device, kernels::linear_scratch_bytes(device));
}

/// A linear map with random arguments and gradients that are not zero at first.
struct Linear {
  Device device;
  std::int64_t T, D, E;
  TestTensor<float> x_TD = rounded(random_tensor({T, D}, 1), device);
  TestTensor<float> w_ED = rounded(random_tensor({E, D}, 2, 0.5), device);
  TestTensor<float> b_E = rounded(random_tensor({E}, 3), device);
  TestTensor<float> dy_TE = rounded(random_tensor({T, E}, 4), device);
  TestTensor<float> y_TE = rounded(random_tensor({T, E}, 6), device);
  TestTensor<float> dx_TD = rounded(random_tensor({T, D}, 8), device);
  TestTensor<float> dw_ED = random_tensor({E, D}, 9);
  TestTensor<float> db_E = random_tensor({E}, 10);

  reference::LinearShape shape() const {
    return {static_cast<std::size_t>(T), static_cast<std::size_t>(D), static_cast<std::size_t>(E)};
  }
  std::string name() const { return fmt::format("T={} D={} E={}", T, D, E); }
  std::vector<double> expected_y() const {
    return reference::linear(shape(), x_TD.doubles(), w_ED.doubles(), b_E.doubles());
  }

  void run_forward(const OpContext& context, bool has_bias = true) {
    Arguments arguments(context);
    linear_forward(context.stream(), {.x_TD = arguments.in_compute(x_TD),
                                      .w_ED = arguments.in_compute(w_ED),
                                      .b_E = has_bias ? arguments.in_compute(b_E) : tensor::ConstTensorView(),
                                      .y_TE = arguments.out_compute(y_TE)});
    arguments.fetch();
  }
  void run_backward_input(const OpContext& context, Accumulate accumulate) {
    Arguments arguments(context);
    linear_backward_input(context.stream(), {.dy_TE = arguments.in_compute(dy_TE),
                                             .w_ED = arguments.in_compute(w_ED),
                                             .dx_TD = arguments.out_compute(dx_TD),
                                             .accumulate = accumulate});
    arguments.fetch();
  }
  void run_backward_weight(const OpContext& context, Accumulate accumulate = Accumulate::Yes) {
    Arguments arguments(context);
    linear_backward_weight(context.stream(), {.x_TD = arguments.in_compute(x_TD),
                                              .dy_TE = arguments.in_compute(dy_TE),
                                              .dw_ED = arguments.out(dw_ED),
                                              .db_E = arguments.out(db_E),
                                              .accumulate = accumulate});
    arguments.fetch();
  }
  void run_all(const OpContext& context) {
    run_forward(context);
    run_backward_input(context, Accumulate::No);
    run_backward_weight(context);
  }

  bool has_same_results(const Linear& other) const {
    return y_TE == other.y_TE && dx_TD == other.dx_TD && dw_ED == other.dw_ED && db_E == other.db_E;
  }
};

/// Odd ones, one of a single column as next-sentence logits have two, and some that tensor cores like.
std::vector<Linear> shapes(Device device) {
  return {{device, 1, 1, 1},     {device, 1, 40, 3},    {device, 5, 8, 16},
          {device, 37, 67, 19},  {device, 130, 20, 70}, {device, 64, 256, 64},
          {device, 7, 600, 130}, {device, 33, 128, 2},  {device, 300, 72, 264}};
}

double gradient_tolerance(Device device) {
  return device == Device::Cpu ? kGradientRelative : kBFloat16Relative;
}

class LinearForward : public OnDevice {};
class LinearBackwardInput : public OnDevice {};
class LinearBackwardWeight : public OnDevice {};
class LinearOp : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, LinearForward, kDevices, device_of);
INSTANTIATE_TEST_SUITE_P(Devices, LinearBackwardInput, kDevices, device_of);
INSTANTIATE_TEST_SUITE_P(Devices, LinearBackwardWeight, kDevices, device_of);
INSTANTIATE_TEST_SUITE_P(Devices, LinearOp, kDevices, device_of);

TEST_P(LinearForward, IsProductPlusBias) {
  const OpContext context = context_of(device());
  for (Linear& linear : shapes(device())) {
    linear.run_forward(context);
    expect_near(linear.y_TE, linear.expected_y(), linear.name(), compute_tolerance(device()));
  }
}

TEST_P(LinearForward, BiasMayBeLeftOut) {
  const OpContext context = context_of(device());
  for (Linear& linear : shapes(device())) {
    linear.run_forward(context, false);
    expect_near(linear.y_TE,
                reference::linear(linear.shape(), linear.x_TD.doubles(), linear.w_ED.doubles(), {}),
                linear.name(), compute_tolerance(device()));
  }
}

TEST_P(LinearBackwardInput, IsGradientOfForward) {
  const OpContext context = context_of(device());
  Linear linear = {device(), 3, 5, 7};
  const auto loss = [&](const std::vector<double>& x_TD) {
    return dot(reference::linear(linear.shape(), x_TD, linear.w_ED.doubles(), {}), linear.dy_TE.doubles());
  };
  linear.run_backward_input(context, Accumulate::No);
  expect_near(linear.dx_TD, numeric_gradient(linear.x_TD.doubles(), loss), "dx",
              gradient_tolerance(device()));
}

TEST_P(LinearBackwardInput, OverwritesOrAccumulates) {
  const OpContext context = context_of(device());
  for (Linear& linear : shapes(device())) {
    const std::vector<double> dx_TD =
        reference::linear_dx(linear.shape(), linear.dy_TE.doubles(), linear.w_ED.doubles());
    const std::vector<double> sum_TD = plus(linear.dx_TD.doubles(), dx_TD);
    linear.run_backward_input(context, Accumulate::Yes);
    expect_near(linear.dx_TD, sum_TD, linear.name() + " added", compute_tolerance(device()));
    linear.run_backward_input(context, Accumulate::No);
    expect_near(linear.dx_TD, dx_TD, linear.name(), compute_tolerance(device()));
  }
}

// Gradients of weights are kept in fp32 on both devices.
TEST_P(LinearBackwardWeight, AccumulatesGradientsOfForward) {
  const OpContext context = context_of(device());
  Linear linear = {device(), 3, 5, 7};
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
  linear.run_backward_weight(context);
  expect_near(linear.dw_ED, dw_ED, "dw", kGradientRelative);
  expect_near(linear.db_E, db_E, "db", kGradientRelative);
}

TEST_P(LinearBackwardWeight, AccumulatesForEveryShape) {
  const OpContext context = context_of(device());
  for (Linear& linear : shapes(device())) {
    const std::vector<double> dw_ED =
        plus(linear.dw_ED.doubles(),
             reference::linear_dw(linear.shape(), linear.x_TD.doubles(), linear.dy_TE.doubles()));
    const std::vector<double> db_E =
        plus(linear.db_E.doubles(), reference::linear_db(linear.shape(), linear.dy_TE.doubles()));
    linear.run_backward_weight(context);
    expect_near(linear.dw_ED, dw_ED, linear.name() + " dw");
    expect_near(linear.db_E, db_E, linear.name() + " db");
  }
}

TEST_P(LinearBackwardWeight, OverwritesWhateverWasThere) {
  const OpContext context = context_of(device());
  std::vector<Linear> cases = shapes(device());
  cases.push_back({device(), 0, 8, 16});
  for (Linear& linear : cases) {
    Linear from_zero = linear;
    std::ranges::fill(from_zero.dw_ED.values(), 0.0F);
    from_zero.run_backward_weight(context);
    std::ranges::fill(linear.dw_ED.values(), NAN);
    linear.run_backward_weight(context, Accumulate::No);
    EXPECT_EQ(linear.dw_ED, from_zero.dw_ED) << linear.name();
    EXPECT_EQ(linear.db_E, from_zero.db_E) << linear.name();
  }
}

TEST_P(LinearBackwardWeight, SumsColumnsOfManyRows) {
  const OpContext context = context_of(device());
  for (const std::int64_t E : {std::int64_t{9}, std::int64_t{264}}) {
    Linear linear = {device(), 3001, 8, E};
    const std::vector<double> db_E =
        plus(linear.db_E.doubles(), reference::linear_db(linear.shape(), linear.dy_TE.doubles()));
    linear.run_backward_weight(context);
    expect_near(linear.db_E, db_E, linear.name());
  }
}

TEST_P(LinearOp, WithoutRowsChangesNoGradient) {
  const OpContext context = context_of(device());
  Linear linear = {device(), 0, 5, 7};
  const Linear before = linear;
  linear.run_all(context);
  EXPECT_EQ(linear.dw_ED, before.dw_ED);
  EXPECT_EQ(linear.db_E, before.db_E);
}

TEST_P(LinearOp, RepetitionDoesNotChangeABit) {
  for (const Linear& linear : {Linear{device(), 300, 70, 530}, Linear{device(), 1500, 128, 512}}) {
    const OpContext context = context_of(device());
    Linear once = linear;
    Linear twice = linear;
    once.run_all(context);
    twice.run_all(context);
    EXPECT_TRUE(once.has_same_results(twice)) << linear.name();
  }
}

TEST_P(LinearOp, ScratchIsAsLargeAsAskedFor) {
  const OpContext context(device(), kernels::linear_scratch_bytes(device()));
  Linear linear = {device(), 64, 64, 64};
  linear.run_all(context);
  expect_near(linear.y_TE, linear.expected_y(), "y", compute_tolerance(device()));
}

TEST(Linear, ThreadsDoNotChangeABit) {
  Linear alone = {Device::Cpu, 300, 70, 530};
  Linear together = alone;
  alone.run_all(OpContext(1));
  together.run_all(OpContext(3));
  EXPECT_TRUE(alone.has_same_results(together));
}

TEST(Linear, RefusesShapesThatDoNotFit) {
  const OpContext context;
  Linear linear = {Device::Cpu, 4, 5, 7};
  TestTensor<float> narrow({4, 6});
  EXPECT_THROW(linear_forward(context.stream(), {.x_TD = linear.x_TD, .w_ED = linear.w_ED, .y_TE = narrow}),
               base::InternalError);
}

TEST(Linear, RefusesArgumentsThatAreLeftOut) {
  const OpContext context;
  Linear linear = {Device::Cpu, 4, 5, 7};
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
