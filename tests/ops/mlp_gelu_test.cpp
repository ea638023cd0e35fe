#include "plenum/kernels/mlp_gelu.h"

#include <fmt/format.h>

#include "tests/ops/op_device.h"
#include "tests/reference/activation.h"
#include "tests/reference/linear.h"

namespace plenum::ops {
namespace {

using kernels::mlp_gelu_backward;
using kernels::mlp_gelu_forward;
using tensor::Device;

double gradient_tolerance(Device device) {
  return device == Device::Cpu ? kFloat32Relative : kBFloat16TwiceRelative;
}

/// Random arguments, and a gradient that is not zero at first. The standard deviation of u is 2.1: of its
/// elements one in 18 is beyond 4 or -4, where GELU and its derivative have reached their tails.
struct MlpGelu {
  Device device;
  std::int64_t T, D, F;
  double w1_scale = 6 / std::sqrt(static_cast<double>(D));
  TestTensor<float> x_TD = rounded(random_tensor({T, D}, 1), device);
  TestTensor<float> w1_FD = rounded(random_tensor({F, D}, 2, w1_scale), device);
  TestTensor<float> b1_F = rounded(random_tensor({F}, 3), device);
  TestTensor<float> dy_TD = rounded(random_tensor({T, D}, 4), device);
  TestTensor<float> w2_DF = rounded(random_tensor({D, F}, 5, 0.5), device);
  TestTensor<float> h_TF = rounded(random_tensor({T, F}, 6), device);
  TestTensor<float> kept_TF = rounded(random_tensor({T, F}, 7), device);
  TestTensor<float> du_TF = rounded(random_tensor({T, F}, 8), device);
  TestTensor<float> db1_F = random_tensor({F}, 9);

  std::string name() const { return fmt::format("T={} D={} F={}", T, D, F); }
  OpContext context() const { return OpContext(device, kernels::mlp_gelu_scratch_bytes(device, T, F)); }
  reference::LinearShape first_map(std::int64_t rows) const {
    return {static_cast<std::size_t>(rows), static_cast<std::size_t>(D), static_cast<std::size_t>(F)};
  }
  reference::LinearShape second_map(std::int64_t rows) const {
    return {static_cast<std::size_t>(rows), static_cast<std::size_t>(F), static_cast<std::size_t>(D)};
  }

  // What is expected of the first rows.
  std::vector<double> expected_u(std::int64_t rows) const {
    return reference::linear(first_map(rows), x_TD.doubles(), w1_FD.doubles(), b1_F.doubles());
  }
  std::vector<double> expected_h(std::int64_t rows) const {
    std::vector<double> h = expected_u(rows);
    for (double& value : h) value = reference::gelu(value);
    return h;
  }
  std::vector<double> expected_du(std::int64_t rows) const {
    std::vector<double> du = reference::linear_dx(second_map(rows), dy_TD.doubles(), w2_DF.doubles());
    const std::vector<double> u = expected_u(rows);
    for (std::size_t i = 0; i < du.size(); ++i) du[i] *= reference::gelu_derivative(u[i]);
    return du;
  }

  void run_forward_alone(const OpContext& context) {
    Arguments arguments(context);
    mlp_gelu_forward(context.stream(), {.x_TD = arguments.in_compute(x_TD),
                                        .w1_FD = arguments.in_compute(w1_FD),
                                        .b1_F = arguments.in_compute(b1_F),
                                        .h_TF = arguments.out_compute(h_TF)});
    arguments.fetch();
  }
  void run(const OpContext& context) {
    Arguments arguments(context);
    const tensor::TensorView kept = arguments.out_compute(kept_TF);
    mlp_gelu_forward(context.stream(), {.x_TD = arguments.in_compute(x_TD),
                                        .w1_FD = arguments.in_compute(w1_FD),
                                        .b1_F = arguments.in_compute(b1_F),
                                        .h_TF = arguments.out_compute(h_TF),
                                        .kept_TF = kept});
    mlp_gelu_backward(context.stream(), {.dy_TD = arguments.in_compute(dy_TD),
                                         .w2_DF = arguments.in_compute(w2_DF),
                                         .kept_TF = kept,
                                         .du_TF = arguments.out_compute(du_TF),
                                         .db1_F = arguments.out(db1_F)});
    arguments.fetch();
  }

  bool has_same_results(const MlpGelu& other) const {
    return h_TF == other.h_TF && kept_TF == other.kept_TF && du_TF == other.du_TF && db1_F == other.db1_F;
  }
};

/// Odd ones, some that tensor cores like, and some with enough rows for the kernels of Hopper, on either side
/// of where these begin; none is a whole number of their tiles.
std::vector<MlpGelu> shapes(Device device) {
  return {{device, 1, 1, 1},       {device, 5, 8, 16},       {device, 37, 19, 67},
          {device, 64, 64, 256},   {device, 300, 264, 72},   {device, 1023, 64, 64},
          {device, 1024, 64, 64},  {device, 1100, 64, 320},  {device, 1100, 320, 64},
          {device, 1100, 72, 320}, {device, 1025, 448, 192}, {device, 2049, 128, 128}};
}

class MlpGeluForward : public OnDevice {};
class MlpGeluBackward : public OnDevice {};
class MlpGeluOp : public OnDevice {};
class MlpGeluOnGpu : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, MlpGeluForward, kDevices, device_of);
INSTANTIATE_TEST_SUITE_P(Devices, MlpGeluBackward, kDevices, device_of);
INSTANTIATE_TEST_SUITE_P(Devices, MlpGeluOp, kDevices, device_of);
INSTANTIATE_TEST_SUITE_P(Devices, MlpGeluOnGpu, kGpuAlone, device_of);

TEST_P(MlpGeluForward, IsGeluOfProductPlusBias) {
  for (MlpGelu& mlp : shapes(device())) {
    mlp.run(mlp.context());
    expect_near(mlp.h_TF, mlp.expected_h(mlp.T), mlp.name(), compute_tolerance(device()));
  }
}

TEST_P(MlpGeluForward, NeedsNoPlaceToKeep) {
  for (MlpGelu& mlp : shapes(device())) {
    mlp.run_forward_alone(mlp.context());
    expect_near(mlp.h_TF, mlp.expected_h(mlp.T), mlp.name(), compute_tolerance(device()));
  }
}

TEST(MlpGelu, KeepsTheInputOnTheCpu) {
  for (MlpGelu& mlp : shapes(Device::Cpu)) {
    mlp.run(mlp.context());
    expect_near(mlp.kept_TF, mlp.expected_u(mlp.T), mlp.name());
  }
}

TEST_P(MlpGeluBackward, IsGradientOfForward) {
  for (MlpGelu mlp : {MlpGelu{device(), 3, 7, 5}, MlpGelu{device(), 6, 24, 16}}) {
    const std::vector<double> db1_F = mlp.db1_F.doubles();
    const auto loss = [&](std::vector<double> u_TF) {
      for (double& value : u_TF) value = reference::gelu(value);
      return dot(reference::linear(mlp.second_map(mlp.T), u_TF, mlp.w2_DF.doubles(), {}),
                 mlp.dy_TD.doubles());
    };
    mlp.run(mlp.context());
    const std::vector<double> du_TF = numeric_gradient(mlp.expected_u(mlp.T), loss);
    const double tolerance = std::max(kGradientRelative, gradient_tolerance(device()));
    expect_near(mlp.du_TF, du_TF, mlp.name(), tolerance);
    expect_near(mlp.db1_F, plus(db1_F, reference::column_sums(du_TF, db1_F.size())), mlp.name() + " db1",
                tolerance);
  }
}

TEST_P(MlpGeluBackward, AgreesWithTheReferenceAndAddsToTheGradientOfTheBias) {
  for (MlpGelu& mlp : shapes(device())) {
    const std::vector<double> du_TF = mlp.expected_du(mlp.T);
    const std::vector<double> db1_F =
        plus(mlp.db1_F.doubles(), reference::column_sums(du_TF, mlp.db1_F.values().size()));
    mlp.run(mlp.context());
    expect_near(mlp.du_TF, du_TF, mlp.name(), gradient_tolerance(device()));
    expect_near(mlp.db1_F, db1_F, mlp.name() + " db1", gradient_tolerance(device()));
  }
}

/// Where rows repeat, the reference needs only the first of them to know the results of all. They begin anew
/// within tiles, so that a tile in the place of another is seen.
constexpr std::int64_t kPeriod = 43;

template <typename Value>
void repeat_rows(std::vector<Value>& matrix, std::int64_t num_columns) {
  const auto distance = static_cast<std::size_t>(kPeriod * num_columns);
  for (std::size_t i = distance; i < matrix.size(); ++i) matrix[i] = matrix[i - distance];
}
/// All rows from the first, of a tensor like this.
std::vector<double> repeated(std::vector<double> first_rows, const TestTensor<float>& like) {
  first_rows.resize(like.values().size());
  repeat_rows(first_rows, like.shape()[1]);
  return first_rows;
}

// 5 x 40 tiles of 256 x 192 for a pair of blocks, of which a Hopper has 66: three or four for each. Each
// takes 7 steps along the sum, more than there are stages.
TEST_P(MlpGeluOp, TakesMoreTilesThanRunAtOnce) {
  MlpGelu mlp = {device(), 1032, 448, 7552};
  repeat_rows(mlp.x_TD.values(), mlp.D);
  repeat_rows(mlp.dy_TD.values(), mlp.D);
  const std::vector<double> du_TF = repeated(mlp.expected_du(kPeriod), mlp.du_TF);
  const std::vector<double> db1_F =
      plus(mlp.db1_F.doubles(), reference::column_sums(du_TF, mlp.db1_F.values().size()));
  mlp.run(mlp.context());
  expect_near(mlp.h_TF, repeated(mlp.expected_h(kPeriod), mlp.h_TF), "h", compute_tolerance(device()));
  expect_near(mlp.du_TF, du_TF, "du", gradient_tolerance(device()));
  expect_near(mlp.db1_F, db1_F, "db1", gradient_tolerance(device()));
}

TEST_P(MlpGeluOp, WithoutRowsChangesNoGradient) {
  MlpGelu mlp = {device(), 0, 5, 7};
  const MlpGelu before = mlp;
  mlp.run(mlp.context());
  EXPECT_EQ(mlp.db1_F, before.db1_F);
}

TEST_P(MlpGeluOp, RepetitionDoesNotChangeABit) {
  // Of the last, too, every pair of blocks of a Hopper has several tiles.
  for (const MlpGelu& mlp : {MlpGelu{device(), 300, 70, 530}, MlpGelu{device(), 1500, 128, 512},
                             MlpGelu{device(), 1032, 192, 7552}}) {
    const OpContext context = mlp.context();
    MlpGelu once = mlp;
    MlpGelu twice = mlp;
    once.run(context);
    twice.run(context);
    EXPECT_TRUE(once.has_same_results(twice)) << mlp.name();
  }
}

TEST(MlpGelu, ThreadsDoNotChangeABit) {
  MlpGelu alone = {Device::Cpu, 300, 70, 530};
  MlpGelu together = alone;
  alone.run(OpContext(1));
  together.run(OpContext(3));
  EXPECT_TRUE(alone.has_same_results(together));
}

TEST(MlpGelu, RefusesWhatDoesNotFitOrIsLeftOut) {
  const OpContext context;
  MlpGelu mlp = {Device::Cpu, 4, 5, 7};
  TestTensor<float> narrow({4, 6});
  const tensor::TensorView nowhere_47(static_cast<float*>(nullptr), {4, 7});
  EXPECT_THROW(
      mlp_gelu_forward(
          context.stream(),
          {.x_TD = mlp.x_TD, .w1_FD = mlp.w1_FD, .b1_F = mlp.b1_F, .h_TF = mlp.h_TF, .kept_TF = narrow}),
      base::InternalError);
  EXPECT_THROW(mlp_gelu_backward(context.stream(), {.dy_TD = mlp.dy_TD,
                                                    .w2_DF = mlp.w2_DF,
                                                    .kept_TF = nowhere_47,
                                                    .du_TF = mlp.du_TF,
                                                    .db1_F = mlp.db1_F}),
               base::InternalError);
}

// With as many rows as the kernels of Hopper begin with, of which backward's alone needs scratch.
TEST_P(MlpGeluOnGpu, RefusesScratchThatIsTooSmall) {
  MlpGelu mlp = {device(), 1024, 64, 64};
  EXPECT_THROW(mlp.run(OpContext(device(), 256)), base::InternalError);
}

// Whichever kernels the number of rows leads to.
TEST_P(MlpGeluOnGpu, RefusesWhatIsNotAligned) {
  for (const std::int64_t T : {8, 1024}) {
    MlpGelu mlp = {device(), T, 64, 64};
    const OpContext context = mlp.context();
    Arguments arguments(context);
    const tensor::ConstTensorView longer = arguments.in_compute(random_tensor({T * mlp.D + 1}, 1));
    const tensor::ConstTensorView shifted_TD(longer.data<tensor::BFloat16>() + 1, {T, mlp.D});
    EXPECT_THROW(mlp_gelu_forward(context.stream(), {.x_TD = shifted_TD,
                                                     .w1_FD = arguments.in_compute(mlp.w1_FD),
                                                     .b1_F = arguments.in_compute(mlp.b1_F),
                                                     .h_TF = arguments.out_compute(mlp.h_TF)}),
                 base::InternalError)
        << mlp.name();
  }
}

}  // namespace
}  // namespace plenum::ops
