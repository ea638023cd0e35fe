#include "plenum/kernels/layer_norm.h"

#include <gtest/gtest.h>

#include "tests/ops/layer_norm_run.h"
#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

using kernels::layer_norm_forward;

class LayerNormForward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, LayerNormForward, kDevices, device_of);
class LayerNormBackward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, LayerNormBackward, kDevices, device_of);

TEST_P(LayerNormForward, KeepsItsPrecisionFarFromZero) {
  TestTensor<float> x = random_tensor({1, 64}, 8, 20);
  for (float& value : x.values()) value += 1000;
  x = rounded(x, device());
  const TestTensor<float> gamma({64}, 1.0F);
  const TestTensor<float> beta({64}, 0.0F);
  TestTensor<float> y({1, 64});
  const OpContext context(device());
  Arguments arguments(context);
  kernels::LayerNormForward args;
  args.epsilon = kLayerNormEpsilon;
  args.x_TD = arguments.in_compute(x);
  args.gamma_D = arguments.in(gamma);
  args.beta_D = arguments.in(beta);
  args.y_TD = arguments.out_compute(y);
  layer_norm_forward(context.stream(), args);
  arguments.fetch();
  // The mean is rounded to 1000's last place, 3e-6 of the deviation at most.
  expect_near(y, reference::layer_norm(x.doubles(), gamma.doubles(), beta.doubles(), kLayerNormEpsilon).y,
              "y", std::max(1e-5, compute_tolerance(device())));
}

TEST_P(LayerNormForward, WritesOverItsInputsWhereAllowed) {
  for (const std::int64_t width : {33, 1024}) {
    const LayerNormRun run({7, width, 26}, device());
    const LayerNormResult apart = run.run();
    const OpContext context(device());
    {
      Arguments arguments(context);
      TestTensor<float> residual = run.residual();
      kernels::LayerNormForward args = run.forward_arguments(arguments);
      args.y_TD = arguments.out_compute(residual);
      args.residual_TD = args.y_TD;
      layer_norm_forward(context.stream(), args);
      arguments.fetch();
      EXPECT_EQ(residual, apart.y) << "y in place of the residual, z left out";
    }
    {
      Arguments arguments(context);
      TestTensor<float> x = run.x();
      TestTensor<float> y = run.residual();
      kernels::LayerNormForward args = run.forward_arguments(arguments);
      args.z_TD = arguments.out_compute(x);
      args.x_TD = args.z_TD;
      args.y_TD = arguments.out_compute(y);
      layer_norm_forward(context.stream(), args);
      arguments.fetch();
      EXPECT_EQ(x, apart.z) << "z in place of x";
      EXPECT_EQ(y, apart.y);
    }
  }
}

TEST_P(LayerNormBackward, LeavesTheGradientOfTheBiasOutWhereItIsNotGiven) {
  const LayerNormRun run({37, 64, 26}, device());
  LayerNormResult expected = run.run(Place::Apart);
  expected.db = run.db();
  EXPECT_EQ(run.run(Place::Apart, Bias::No), expected);
}

TEST_P(LayerNormBackward, WritesOverItsInput) {
  const LayerNormRun run({37, 1024, 26}, device());
  EXPECT_EQ(run.run(Place::Apart), run.run(Place::OverItsInput));
}

TEST(LayerNormArguments, AreRefusedWhereTheyDoNotFit) {
  const LayerNormRun run({2, 4, 26}, tensor::Device::Cpu);
  const OpContext context;
  Arguments arguments(context);
  kernels::LayerNormForward args = run.forward_arguments(arguments);
  TestTensor<float> narrow({2, 3});
  args.y_TD = narrow;
  EXPECT_THROW(layer_norm_forward(context.stream(), args), base::InternalError);
  TestTensor<float> y({2, 4});
  args.y_TD = y;
  args.rows = {};
  EXPECT_THROW(layer_norm_forward(context.stream(), args), base::InternalError);
}

}  // namespace
}  // namespace plenum::ops
