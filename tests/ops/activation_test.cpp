#include "plenum/kernels/activation.h"

#include <bit>
#include <limits>

#include "tests/ops/op_testing.h"
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
                            double (*function)(double)) {
  constexpr double kRelative = 1e-6;
  for (std::size_t i = 0; i < x.values().size(); ++i) {
    const double expected = function(x.values()[i]);
    ASSERT_NEAR(y.values()[i], expected,
                kRelative * std::abs(expected) + std::numeric_limits<float>::denorm_min())
        << "at " << x.values()[i];
  }
}

double tanh_of(double x) {
  return std::tanh(x);
}

TEST(GeluForward, IsExactFarIntoTheTail) {
  const OpContext context;
  for (const auto& [low, high] : {std::pair{-13.0, 13.0}, std::pair{-1e-3, 1e-3}}) {
    const TestTensor<float> x = ramp(low, high);
    TestTensor<float> y(x.shape());
    gelu_forward(context.stream(), {.x = x, .y = y});
    expect_relatively_near(x, y, reference::gelu);
  }
}

TEST(GeluForward, HasItsLimits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const OpContext context;
  const TestTensor<float> x({5}, {-1e30F, -40, 1e30F, kInfinity, std::numeric_limits<float>::quiet_NaN()});
  TestTensor<float> y({5});
  gelu_forward(context.stream(), {.x = x, .y = y});
  EXPECT_EQ(y.values()[0], 0);
  EXPECT_EQ(y.values()[1], 0);
  EXPECT_EQ(y.values()[2], 1e30F);
  EXPECT_EQ(y.values()[3], kInfinity);
  EXPECT_TRUE(std::isnan(y.values()[4]));
}

TEST(GeluBackward, IsGradientOfForward) {
  const OpContext context;
  const TestTensor<float> x = random_tensor({5, 7}, 1, 4);
  const TestTensor<float> dy = random_tensor({5, 7}, 2);
  const auto loss = [&](std::vector<double> at) {
    for (double& value : at) value = reference::gelu(value);
    return dot(at, dy.doubles());
  };
  TestTensor<float> dx = random_tensor({5, 7}, 3);
  gelu_backward(context.stream(), {.x = x, .dy = dy, .dx = dx});
  expect_near(dx, numeric_gradient(x.doubles(), loss), "dx", kGradientRelative);
}

TEST(GeluBackward, IsRightEverywhereAndInPlace) {
  const OpContext context(2);
  const TestTensor<float> x = ramp(-20, 20);
  TestTensor<float> dx(x.shape(), 2.0F);
  gelu_backward(context.stream(), {.x = x, .dy = dx, .dx = dx});
  std::vector<double> expected = x.doubles();
  for (double& value : expected) value = 2 * reference::gelu_derivative(value);
  expect_near(dx, expected, "dx", 1e-6);
}

TEST(TanhForward, IsRightForSmallAndLarge) {
  const OpContext context;
  for (const auto& [low, high] : {std::pair{-12.0, 12.0}, std::pair{-1e-3, 1e-3}, std::pair{-1e3, 1e3}}) {
    const TestTensor<float> x = ramp(low, high);
    TestTensor<float> y = x;
    tanh_forward(context.stream(), {.x = y, .y = y});
    expect_relatively_near(x, y, tanh_of);
  }
}

TEST(TanhBackward, IsGradientOfForward) {
  const OpContext context;
  const TestTensor<float> x = random_tensor({5, 7}, 1, 2);
  const TestTensor<float> dy = random_tensor({5, 7}, 2);
  const auto loss = [&](std::vector<double> at) {
    for (double& value : at) value = std::tanh(value);
    return dot(at, dy.doubles());
  };
  TestTensor<float> y({5, 7});
  TestTensor<float> dx = dy;
  tanh_forward(context.stream(), {.x = x, .y = y});
  tanh_backward(context.stream(), {.y = y, .dy = dx, .dx = dx});
  expect_near(dx, numeric_gradient(x.doubles(), loss), "dx", kGradientRelative);
}

TEST(Activation, ThreadsDoNotChangeABit) {
  const TestTensor<float> x = random_tensor({7, 9001}, 1, 6);
  std::vector<TestTensor<float>> results;
  for (const std::size_t num_threads : {1U, 3U}) {
    const OpContext context(num_threads);
    TestTensor<float>& y = results.emplace_back(x.shape());
    gelu_forward(context.stream(), {.x = x, .y = y});
    tanh_forward(context.stream(), {.x = y, .y = y});
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Activation, KeepsWhateverIsNotANumber) {
  const OpContext context;
  // Quiet and signalling, either sign, and with all or none of the bits that lie in the fields of a number.
  for (const std::uint32_t bits : {0x7fc00000U, 0xffc00000U, 0x7fffffffU, 0xffffffffU, 0x7f800001U,
                                   0xff800001U, 0x7fbfffffU, 0x7fc12345U, 0x7fe00000U, 0xfff00fffU}) {
    const TestTensor<float> x({1}, std::bit_cast<float>(bits));
    const TestTensor<float> one({1}, 1.0F);
    TestTensor<float> gelu({1}), dgelu({1}), tanh({1}), dtanh({1});
    gelu_forward(context.stream(), {.x = x, .y = gelu});
    gelu_backward(context.stream(), {.x = x, .dy = one, .dx = dgelu});
    tanh_forward(context.stream(), {.x = x, .y = tanh});
    tanh_backward(context.stream(), {.y = tanh, .dy = one, .dx = dtanh});
    for (const TestTensor<float>& result : {gelu, dgelu, tanh, dtanh}) {
      EXPECT_TRUE(std::isnan(result.values()[0])) << std::hex << bits << ": " << result.values()[0];
    }
  }
}

TEST(Activation, NothingIsNoError) {
  const OpContext context;
  TestTensor<float> nothing({0, 4});
  gelu_forward(context.stream(), {.x = nothing, .y = nothing});
  tanh_forward(context.stream(), {.x = nothing, .y = nothing});
}

TEST(Activation, RefusesArgumentsThatAreLeftOutOrDoNotFit) {
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
