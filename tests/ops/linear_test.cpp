#include "plenum/kernels/linear.h"

#include <array>

#include <fmt/format.h>

#include "tests/ops/op_device.h"
#include "tests/reference/activation.h"
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
  TestTensor<float> gelu_input_TD = rounded(random_tensor({T, D}, 5, 3), device);
  TestTensor<float> y_TE = rounded(random_tensor({T, E}, 6), device);
  TestTensor<float> gelu_TE = rounded(random_tensor({T, E}, 7), device);
  TestTensor<float> dx_TD = rounded(random_tensor({T, D}, 8), device);
  TestTensor<float> dw_ED = random_tensor({E, D}, 9);
  TestTensor<float> db_E = random_tensor({E}, 10);
  TestTensor<float> db_D = random_tensor({D}, 11);

  reference::LinearShape shape() const {
    return {static_cast<std::size_t>(T), static_cast<std::size_t>(D), static_cast<std::size_t>(E)};
  }
  std::string name() const { return fmt::format("T={} D={} E={}", T, D, E); }
  std::vector<double> expected_y() const {
    return reference::linear(shape(), x_TD.doubles(), w_ED.doubles(), b_E.doubles());
  }
  std::vector<double> expected_gelu() const {
    std::vector<double> gelu = expected_y();
    for (double& value : gelu) value = reference::gelu(value);
    return gelu;
  }

  void run_forward(const OpContext& context, bool has_bias = true) {
    Arguments arguments(context);
    linear_forward(context.stream(), {.x_TD = arguments.in_compute(x_TD),
                                      .w_ED = arguments.in_compute(w_ED),
                                      .b_E = has_bias ? arguments.in_compute(b_E) : tensor::ConstTensorView(),
                                      .y_TE = arguments.out_compute(y_TE)});
    arguments.fetch();
  }
  void run_gelu(const OpContext& context) {
    Arguments arguments(context);
    linear_forward(context.stream(), {.x_TD = arguments.in_compute(x_TD),
                                      .w_ED = arguments.in_compute(w_ED),
                                      .b_E = arguments.in_compute(b_E),
                                      .y_TE = arguments.out_compute(y_TE),
                                      .gelu_TE = arguments.out_compute(gelu_TE)});
    arguments.fetch();
  }
  void run_gelu_in_place(const OpContext& context) {
    Arguments arguments(context);
    const tensor::TensorView place_TE = arguments.out_compute(gelu_TE);
    linear_forward(context.stream(), {.x_TD = arguments.in_compute(x_TD),
                                      .w_ED = arguments.in_compute(w_ED),
                                      .b_E = arguments.in_compute(b_E),
                                      .y_TE = place_TE,
                                      .gelu_TE = place_TE});
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
  void run_backward_gelu(const OpContext& context) {
    Arguments arguments(context);
    linear_backward_input(context.stream(), {.dy_TE = arguments.in_compute(dy_TE),
                                             .w_ED = arguments.in_compute(w_ED),
                                             .gelu_input_TD = arguments.in_compute(gelu_input_TD),
                                             .dx_TD = arguments.out_compute(dx_TD),
                                             .db_D = arguments.out(db_D)});
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
    run_gelu(context);
    run_backward_gelu(context);
    run_backward_weight(context);
  }

  bool has_same_results(const Linear& other) const {
    return y_TE == other.y_TE && gelu_TE == other.gelu_TE && dx_TD == other.dx_TD && dw_ED == other.dw_ED &&
           db_E == other.db_E && db_D == other.db_D;
  }
};

/// Odd ones, one of a single column as next-sentence logits have two, and some that tensor cores like.
std::vector<Linear> shapes(Device device) {
  return {{device, 1, 1, 1},     {device, 1, 40, 3},    {device, 5, 8, 16},
          {device, 37, 67, 19},  {device, 130, 20, 70}, {device, 64, 256, 64},
          {device, 7, 600, 130}, {device, 33, 128, 2},  {device, 300, 72, 264}};
}

/// Enough rows for the kernels of Hopper; none of these is a whole number of their tiles.
std::vector<Linear> shapes_of_many_rows(Device device) {
  return {
      {device, 1100, 64, 320}, {device, 1100, 320, 64}, {device, 1025, 192, 448}, {device, 2049, 128, 128}};
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

TEST_P(LinearForward, GivesGeluBesideItsInput) {
  const OpContext context = context_of(device());
  for (std::vector<Linear>& some : std::array{shapes(device()), shapes_of_many_rows(device())}) {
    for (Linear& linear : some) {
      linear.run_gelu(context);
      expect_near(linear.y_TE, linear.expected_y(), linear.name(), compute_tolerance(device()));
      expect_near(linear.gelu_TE, linear.expected_gelu(), linear.name() + " gelu",
                  compute_tolerance(device()));
    }
  }
}

TEST_P(LinearForward, GivesGeluInPlaceOfItsInput) {
  const OpContext context = context_of(device());
  for (Linear& linear : shapes(device())) {
    linear.run_gelu_in_place(context);
    expect_near(linear.gelu_TE, linear.expected_gelu(), linear.name(), compute_tolerance(device()));
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

TEST_P(LinearBackwardInput, PassesThroughGeluAndAddsUpItsBias) {
  const OpContext context = context_of(device());
  for (Linear linear : {Linear{device(), 3, 5, 7}, Linear{device(), 6, 16, 24}}) {
    const std::vector<double> db_D = linear.db_D.doubles();
    const auto loss = [&](std::vector<double> z_TD) {
      for (double& value : z_TD) value = reference::gelu(value);
      return dot(reference::linear(linear.shape(), z_TD, linear.w_ED.doubles(), {}), linear.dy_TE.doubles());
    };
    linear.run_backward_gelu(context);
    const std::vector<double> du_TD = numeric_gradient(linear.gelu_input_TD.doubles(), loss);
    expect_near(linear.dx_TD, du_TD, linear.name(), gradient_tolerance(device()));
    // The GPU's product may be rounded before it meets the derivative.
    expect_near(linear.db_D, plus(db_D, reference::column_sums(du_TD, linear.db_D.values().size())),
                linear.name() + " db", gradient_tolerance(device()));
  }
}

TEST_P(LinearBackwardInput, PassesThroughGeluOfManyRows) {
  const OpContext context = context_of(device());
  for (Linear& linear : shapes_of_many_rows(device())) {
    std::vector<double> du_TD =
        reference::linear_dx(linear.shape(), linear.dy_TE.doubles(), linear.w_ED.doubles());
    const std::vector<double> u_TD = linear.gelu_input_TD.doubles();
    for (std::size_t i = 0; i < du_TD.size(); ++i) du_TD[i] *= reference::gelu_derivative(u_TD[i]);
    const std::vector<double> db_D =
        plus(linear.db_D.doubles(), reference::column_sums(du_TD, linear.db_D.values().size()));
    linear.run_backward_gelu(context);
    expect_near(linear.dx_TD, du_TD, linear.name(), compute_tolerance(device()));
    expect_near(linear.db_D, db_D, linear.name() + " db", gradient_tolerance(device()));
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
  EXPECT_EQ(linear.db_D, before.db_D);
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

/// Where rows repeat, the reference needs only the first of them to know the results of all. They begin anew
/// within tiles, so that a tile in the place of another is seen.
constexpr std::size_t kPeriod = 43;

template <typename Value>
void repeat_rows(std::vector<Value>& matrix, std::size_t num_columns) {
  for (std::size_t i = kPeriod * num_columns; i < matrix.size(); ++i)
    matrix[i] = matrix[i - kPeriod * num_columns];
}
/// All rows from the first, of a tensor like this.
std::vector<double> repeated(std::vector<double> first_rows, const TestTensor<float>& like) {
  first_rows.resize(like.values().size());
  repeat_rows(first_rows, like.values().size() / static_cast<std::size_t>(like.shape()[0]));
  return first_rows;
}

// 5 x 40 tiles of 256 x 192 for a pair of blocks, of which a Hopper has 66: three or four for each.
TEST_P(LinearForward, GivesGeluOfMoreTilesThanRunAtOnce) {
  const OpContext context = context_of(device());
  Linear linear = {device(), 1032, 192, 7552};
  const auto [T, D, E] = linear.shape();
  repeat_rows(linear.x_TD.values(), D);
  std::vector<double> expected =
      reference::linear({kPeriod, D, E}, linear.x_TD.doubles(), linear.w_ED.doubles(), linear.b_E.doubles());
  linear.run_gelu(context);
  expect_near(linear.y_TE, repeated(expected, linear.y_TE), "y", compute_tolerance(device()));
  for (double& value : expected) value = reference::gelu(value);
  expect_near(linear.gelu_TE, repeated(expected, linear.gelu_TE), "gelu", compute_tolerance(device()));
}

// 9 x 23 tiles of 128 x 256.
TEST_P(LinearBackwardInput, PassesThroughGeluOfMoreTilesThanRunAtOnce) {
  const OpContext context = context_of(device());
  Linear linear = {device(), 1032, 5696, 192};
  const auto [T, D, E] = linear.shape();
  repeat_rows(linear.dy_TE.values(), E);
  repeat_rows(linear.gelu_input_TD.values(), D);
  std::vector<double> du_TD =
      reference::linear_dx({kPeriod, D, E}, linear.dy_TE.doubles(), linear.w_ED.doubles());
  for (std::size_t i = 0; i < du_TD.size(); ++i)
    du_TD[i] *= reference::gelu_derivative(linear.gelu_input_TD.values()[i]);
  du_TD = repeated(std::move(du_TD), linear.dx_TD);
  const std::vector<double> db_D = plus(linear.db_D.doubles(), reference::column_sums(du_TD, D));
  linear.run_backward_gelu(context);
  expect_near(linear.dx_TD, du_TD, "dx", compute_tolerance(device()));
  expect_near(linear.db_D, db_D, "db", gradient_tolerance(device()));
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
  EXPECT_THROW(linear_backward_input(context.stream(), {.dy_TE = linear.dy_TE,
                                                        .w_ED = linear.w_ED,
                                                        .gelu_input_TD = linear.gelu_input_TD,
                                                        .dx_TD = linear.dx_TD,
                                                        .accumulate = Accumulate::Yes}),
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
