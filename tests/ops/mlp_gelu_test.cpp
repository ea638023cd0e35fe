#include "plenum/kernels/mlp_gelu.h"

#include "tests/ops/mlp_gelu_run.h"
#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

using kernels::mlp_gelu_backward;
using kernels::mlp_gelu_forward;
using tensor::Device;

class MlpGeluForward : public OnDevice {};
class MlpGeluOp : public OnDevice {};
class MlpGeluOnGpu : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, MlpGeluForward, kDevices, device_of);
INSTANTIATE_TEST_SUITE_P(Devices, MlpGeluOp, kDevices, device_of);
INSTANTIATE_TEST_SUITE_P(Devices, MlpGeluOnGpu, kGpuAlone, device_of);

TEST_P(MlpGeluForward, NeedsNoPlaceToKeep) {
  for (MlpGelu mlp : {MlpGelu{device(), 37, 19, 67}, MlpGelu{device(), 1024, 64, 64}}) {
    mlp.run_forward_alone(mlp.context());
    expect_near(mlp.h_TF, mlp.expected_h(mlp.T), mlp.name(), compute_tolerance(device()));
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
  expect_near(mlp.du_TF, du_TF, "du", gelu_gradient_tolerance(device()));
  expect_near(mlp.db1_F, db1_F, "db1", gelu_gradient_tolerance(device()));
}

TEST_P(MlpGeluOp, GivesTheSameBytesTwiceOfMoreTilesThanRunAtOnce) {
  MlpGelu once = {device(), 1032, 192, 7552};
  MlpGelu twice = once;
  const OpContext context = once.context();
  once.run(context);
  twice.run(context);
  EXPECT_TRUE(once.has_same_results(twice));
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
