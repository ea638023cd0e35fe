#include "plenum/kernels/activation.h"

#include <bit>
#include <limits>

#include "tests/ops/op_device.h"
#include "tests/reference/activation.h"

namespace plenum::ops {
namespace {

using kernels::gelu_backward;
using kernels::gelu_forward;
using kernels::tanh_backward;
using kernels::tanh_forward;

/// From `low` to `high`, evenly, both included; a number of elements that fills no vector.
TestTensor<float> ramp(double low, double high) {
  constexpr std::int64_t kCount = 40001;
  TestTensor<float> result({kCount});
  for (std::size_t i = 0; i < result.values().size(); ++i) {
    result.values()[i] = static_cast<float>(low + (high - low) * static_cast<double>(i) / (kCount - 1));
  }
  return result;
}

/// Each element relative to itself: small results must be as exact as large ones.
void expect_relatively_near(const TestTensor<float>& x, const TestTensor<float>& y,
                            double (*function)(double), tensor::Device device) {
  // Half a unit in the last place of BFloat16, and the 2^-13 that the function itself may be off.
  const double relative = device == tensor::Device::Cpu ? 1e-6 : 0x1.0p-8 + 0x1.0p-13;
  for (std::size_t i = 0; i < x.values().size(); ++i) {
    const double expected = function(x.values()[i]);
    ASSERT_NEAR(y.values()[i], expected,
                relative * std::abs(expected) + std::numeric_limits<float>::denorm_min())
        << "at " << x.values()[i];
  }
}

double tanh_of(double x) {
  return std::tanh(x);
}

TestTensor<float> gelu_of(const TestTensor<float>& x, tensor::Device device) {
  const OpContext context(device);
  Arguments arguments(context);
  TestTensor<float> y(x.shape());
  gelu_forward(context.stream(), {.x = arguments.in_compute(x), .y = arguments.out_compute(y)});
  arguments.fetch();
  return y;
}

/// dx, in place of dy.
TestTensor<float> gelu_gradient_of(const TestTensor<float>& x, TestTensor<float> dy, tensor::Device device) {
  const OpContext context(device);
  Arguments arguments(context);
  const tensor::TensorView dx = arguments.out_compute(dy);
  gelu_backward(context.stream(), {.x = arguments.in_compute(x), .dy = dx, .dx = dx});
  arguments.fetch();
  return dy;
}

/// y, in place of x.
TestTensor<float> in_place_tanh_of(TestTensor<float> x, tensor::Device device) {
  const OpContext context(device);
  Arguments arguments(context);
  const tensor::TensorView y = arguments.out_compute(x);
  tanh_forward(context.stream(), {.x = y, .y = y});
  arguments.fetch();
  return x;
}

TestTensor<float> tanh_gradient_of(const TestTensor<float>& y, TestTensor<float> dy, tensor::Device device) {
  const OpContext context(device);
  Arguments arguments(context);
  const tensor::TensorView dx = arguments.out_compute(dy);
  tanh_backward(context.stream(), {.y = arguments.in_compute(y), .dy = dx, .dx = dx});
  arguments.fetch();
  return dy;
}

class GeluForward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, GeluForward, kDevices, device_of);
class GeluBackward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, GeluBackward, kDevices, device_of);
class TanhForward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, TanhForward, kDevices, device_of);
class Activation : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, Activation, kDevices, device_of);

TEST_P(GeluForward, IsExactFarIntoTheTail) {
  for (const auto& [low, high] : {std::pair{-13.0, 13.0}, std::pair{-1e-3, 1e-3}}) {
    const TestTensor<float> x = rounded(ramp(low, high), device());
    expect_relatively_near(x, gelu_of(x, device()), reference::gelu, device());
  }
}

TEST_P(GeluForward, IsNearTheExactFormEverywhere) {
  const double absolute = 1e-7;
  const double relative = device() == tensor::Device::Cuda ? 0x1.0p-8 : 1e-6;
  const TestTensor<float> x = rounded(ramp(-13, 13), device());
  const TestTensor<float> y = gelu_of(x, device());
  for (std::size_t i = 0; i < x.values().size(); ++i) {
    const double expected = reference::gelu(x.values()[i]);
    ASSERT_NEAR(y.values()[i], expected, absolute + relative * std::abs(expected)) << x.values()[i];
  }
}

TEST_P(GeluForward, HasItsLimits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const TestTensor<float> x(
      {5}, {-0x1.0p100F, -40, 0x1.0p100F, kInfinity, std::numeric_limits<float>::quiet_NaN()});
  const TestTensor<float> y = gelu_of(x, device());
  EXPECT_EQ(y.values()[0], 0);
  EXPECT_EQ(y.values()[1], 0);
  EXPECT_EQ(y.values()[2], 0x1.0p100F);
  EXPECT_EQ(y.values()[3], kInfinity);
  EXPECT_TRUE(std::isnan(y.values()[4]));
}

TEST_P(GeluBackward, IsRightEverywhere) {
  const TestTensor<float> x = rounded(ramp(-20, 20), device());
  std::vector<double> expected = x.doubles();
  for (double& value : expected) value = 2 * reference::gelu_derivative(value);
  expect_near(gelu_gradient_of(x, TestTensor<float>(x.shape(), 2.0F), device()), expected, "dx",
              device() == tensor::Device::Cpu ? 1e-6 : kBFloat16Relative);
}

TEST_P(TanhForward, IsRightForSmallAndLarge) {
  for (const auto& [low, high] : {std::pair{-12.0, 12.0}, std::pair{-1e-3, 1e-3}, std::pair{-1e3, 1e3}}) {
    const TestTensor<float> x = rounded(ramp(low, high), device());
    expect_relatively_near(x, in_place_tanh_of(x, device()), tanh_of, device());
  }
}

TEST_P(Activation, KeepsWhateverIsNotANumber) {
  const TestTensor<float> one({1}, 1.0F);
  // Quiet and signalling, either sign, and with all or none of the bits that lie in the fields of a number.
  for (const std::uint32_t bits : {0x7fc00000U, 0xffc00000U, 0x7fffffffU, 0xffffffffU, 0x7f800001U,
                                   0xff800001U, 0x7fbfffffU, 0x7fc12345U, 0x7fe00000U, 0xfff00fffU}) {
    const TestTensor<float> x({1}, std::bit_cast<float>(bits));
    const TestTensor<float> tanh = in_place_tanh_of(x, device());
    for (const TestTensor<float>& result : {gelu_of(x, device()), gelu_gradient_of(x, one, device()), tanh,
                                            tanh_gradient_of(tanh, one, device())}) {
      EXPECT_TRUE(std::isnan(result.values()[0])) << std::hex << bits << ": " << result.values()[0];
    }
  }
}

TEST(ActivationArguments, AreRefusedWhereTheyAreLeftOutOrDoNotFit) {
  const OpContext context;
  TestTensor<float> x({2, 3});
  TestTensor<float> narrow({2, 2});
  const tensor::TensorView nowhere(static_cast<float*>(nullptr), {2, 3});
  EXPECT_THROW(gelu_forward(context.stream(), {.x = x, .y = nowhere}), base::InternalError);
  EXPECT_THROW(gelu_backward(context.stream(), {.x = nowhere, .dy = x, .dx = x}), base::InternalError);
  EXPECT_THROW(tanh_forward(context.stream(), {.x = x, .y = narrow}), base::InternalError);
  EXPECT_THROW(tanh_backward(context.stream(), {.y = x, .dy = nowhere, .dx = x}), base::InternalError);
}

}  // namespace
}  // namespace plenum::ops
