#include "plenum/kernels/layer_norm.h"

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"
#include "tests/reference/layer_norm.h"

namespace plenum::ops {
namespace {

using kernels::Dropout;
using kernels::layer_norm_backward;
using kernels::layer_norm_forward;
using kernels::layer_norm_scratch_bytes;
using kernels::RowIdentities;

constexpr float kEpsilon = 1e-5F;

struct LayerNormCase {
  std::int64_t rows;
  std::int64_t width;
  std::uint32_t threshold;
  bool has_residual = true;

  std::string name() const {
    return fmt::format("T={} D={} threshold={} residual={}", rows, width, threshold, has_residual);
  }
};

/// Small enough for differences.
const std::vector<LayerNormCase> kSmallCases = {{1, 3, 0},          {1, 4, 26},        {3, 16, 0},
                                                {3, 16, 26},        {2, 5, 128},       {7, 33, 26},
                                                {20, 31, 0, false}, {9, 48, 26, false}};
/// Widths of models, wider ones, and ones that are no multiple of eight; rows that fill no block.
const std::vector<LayerNormCase> kLargeCases = {{2051, 128, 26}, {70, 768, 26},  {2050, 1024, 26},
                                                {3, 1024, 0},    {9, 1100, 255}, {66, 2048, 26, false},
                                                {5, 4096, 26}};

std::vector<LayerNormCase> all_cases() {
  std::vector<LayerNormCase> cases = kSmallCases;
  cases.insert(cases.end(), kLargeCases.begin(), kLargeCases.end());
  return cases;
}

enum class Place : std::uint8_t { Apart, OverItsInput };

struct Result {
  TestTensor<float> z, y, mean, inverse_deviation;
  TestTensor<float> dz, dx, dgamma, dbeta;
  friend bool operator==(const Result&, const Result&) = default;
};

// Arguments of a case, and what the op makes of them.
class LayerNormRun {
 public:
  LayerNormRun(const LayerNormCase& c, tensor::Device device)
      : case_(c),
        device_(device),
        dropout_{.threshold = c.threshold,
                 .key = base::RandomFunction(9, base::Purpose::Dropout, 4).key(),
                 .layer = 3,
                 .site = kernels::DropoutSite::AttentionOutput},
        samples_({c.rows}),
        positions_({c.rows}),
        x_(rounded(random_tensor({c.rows, c.width}, 1), device)),
        residual_(rounded(random_tensor({c.rows, c.width}, 2), device)),
        gamma_(random_tensor({c.width}, 3)),
        beta_(random_tensor({c.width}, 4)),
        dy_(rounded(random_tensor({c.rows, c.width}, 5), device)),
        dgamma_(random_tensor({c.width}, 6)),
        dbeta_(random_tensor({c.width}, 7)) {
    for (std::size_t row = 0; row < samples_.values().size(); ++row) {
      samples_.values()[row] = static_cast<std::int64_t>((std::uint64_t{1} << 40) + row / 3);
      positions_.values()[row] = static_cast<std::int32_t>(row % 3);
    }
  }

  /// `place` says where dz lies.
  Result run(Place place = Place::Apart) const { return run(OpContext(device_, scratch_bytes()), place); }
  /// On the CPU with more threads.
  Result run_threads(std::size_t num_threads) const {
    return run(OpContext(num_threads, scratch_bytes()), Place::Apart);
  }

  /// z, y and the moments are left to the caller, who may let them lie elsewhere.
  kernels::LayerNormForward forward_arguments(Arguments& arguments) const {
    kernels::LayerNormForward forward;
    forward.x_TD = arguments.in_compute(x_);
    if (case_.has_residual) forward.residual_TD = arguments.in_compute(residual_);
    forward.gamma_D = arguments.in(gamma_);
    forward.beta_D = arguments.in(beta_);
    forward.epsilon = kEpsilon;
    forward.dropout = dropout_;
    forward.rows = rows(arguments);
    return forward;
  }

  std::vector<double> expected_z() const {
    const std::vector<double> z = dropped(x_.doubles());
    return case_.has_residual ? plus(z, residual_.doubles()) : z;
  }
  std::vector<double> dropped(const std::vector<double>& x) const {
    return reference::drop_rows(dropout_, x, samples_.values(), positions_.values());
  }
  /// What must come of z as it was kept.
  reference::LayerNorm expected(const TestTensor<float>& z) const {
    return reference::layer_norm(z.doubles(), gamma_.doubles(), beta_.doubles(), kEpsilon);
  }
  reference::LayerNormGradient expected_gradient(const TestTensor<float>& z) const {
    return reference::layer_norm_gradient(z.doubles(), gamma_.doubles(), dy_.doubles(), kEpsilon);
  }
  double loss(const std::vector<double>& z, const std::vector<double>& gamma,
              const std::vector<double>& beta) const {
    return dot(reference::layer_norm(z, gamma, beta, kEpsilon).y, dy_.doubles());
  }

  const TestTensor<float>& x() const { return x_; }
  const TestTensor<float>& residual() const { return residual_; }
  const TestTensor<float>& gamma() const { return gamma_; }
  const TestTensor<float>& beta() const { return beta_; }
  const TestTensor<float>& dgamma() const { return dgamma_; }
  const TestTensor<float>& dbeta() const { return dbeta_; }

 private:
  std::size_t scratch_bytes() const { return layer_norm_scratch_bytes(device_, case_.width) + 64; }

  RowIdentities rows(Arguments& arguments) const {
    return {.sample_T = arguments.in(samples_), .position_T = arguments.in(positions_)};
  }

  Result run(const OpContext& context, Place place) const {
    const tensor::Shape shape = {case_.rows, case_.width};
    Result r{.z = TestTensor<float>(shape, 9.0F),
             .y = TestTensor<float>(shape, 9.0F),
             .mean = TestTensor<float>({case_.rows}, 9.0F),
             .inverse_deviation = TestTensor<float>({case_.rows}, 9.0F),
             .dz = place == Place::Apart ? TestTensor<float>(shape, 9.0F) : dy_,
             .dx = TestTensor<float>(shape, 9.0F),
             .dgamma = dgamma_,
             .dbeta = dbeta_};
    Arguments arguments(context);
    kernels::LayerNormForward forward = forward_arguments(arguments);
    forward.z_TD = arguments.out_compute(r.z);
    forward.y_TD = arguments.out_compute(r.y);
    forward.mean_T = arguments.out(r.mean);
    forward.inverse_deviation_T = arguments.out(r.inverse_deviation);
    layer_norm_forward(context.stream(), forward);
    const tensor::TensorView dz_TD = arguments.out_compute(r.dz);
    layer_norm_backward(context.stream(),
                        {.dy_TD = place == Place::Apart ? arguments.in_compute(dy_) : dz_TD,
                         .z_TD = forward.z_TD,
                         .mean_T = forward.mean_T,
                         .inverse_deviation_T = forward.inverse_deviation_T,
                         .gamma_D = forward.gamma_D,
                         .dropout = dropout_,
                         .rows = forward.rows,
                         .dz_TD = dz_TD,
                         .dx_TD = dropout_.is_on() ? arguments.out_compute(r.dx) : tensor::TensorView(),
                         .dgamma_D = arguments.out(r.dgamma),
                         .dbeta_D = arguments.out(r.dbeta)});
    arguments.fetch();
    return r;
  }

  LayerNormCase case_;
  tensor::Device device_;
  Dropout dropout_;
  TestTensor<std::int64_t> samples_;
  TestTensor<std::int32_t> positions_;
  TestTensor<float> x_, residual_, gamma_, beta_, dy_, dgamma_, dbeta_;
};

class LayerNormForward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, LayerNormForward, kDevices, device_of);
class LayerNormBackward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, LayerNormBackward, kDevices, device_of);
class LayerNorm : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, LayerNorm, kDevices, device_of);

TEST_P(LayerNormForward, AgreesWithTheReference) {
  for (const LayerNormCase& c : all_cases()) {
    const LayerNormRun run(c, device());
    const Result result = run.run();
    expect_near(result.z, run.expected_z(), "z " + c.name(), compute_tolerance(device()));
    const reference::LayerNorm expected = run.expected(result.z);
    expect_near(result.y, expected.y, "y " + c.name(), compute_tolerance(device()));
    expect_near(result.mean, expected.mean, "mean " + c.name());
    expect_near(result.inverse_deviation, expected.inverse_deviation, "inverse deviation " + c.name());
  }
}

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
  args.epsilon = kEpsilon;
  args.x_TD = arguments.in_compute(x);
  args.gamma_D = arguments.in(gamma);
  args.beta_D = arguments.in(beta);
  args.y_TD = arguments.out_compute(y);
  layer_norm_forward(context.stream(), args);
  arguments.fetch();
  // The mean is rounded to 1000's last place, 3e-6 of the deviation at most.
  expect_near(y, reference::layer_norm(x.doubles(), gamma.doubles(), beta.doubles(), kEpsilon).y, "y",
              std::max(1e-5, compute_tolerance(device())));
}

TEST_P(LayerNormForward, WritesOverItsInputsWhereAllowed) {
  for (const std::int64_t width : {33, 1024}) {
    const LayerNormRun run({7, width, 26}, device());
    const Result apart = run.run();
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

TEST_P(LayerNormBackward, AgreesWithDifferencesOfTheReference) {
  const double tolerance = std::max(kGradientRelative, compute_tolerance(device()));
  for (const LayerNormCase& c : kSmallCases) {
    const LayerNormRun run(c, device());
    const Result result = run.run();
    const auto gamma = run.gamma().doubles();
    const auto beta = run.beta().doubles();
    const auto dz =
        numeric_gradient(result.z.doubles(), [&](const auto& at) { return run.loss(at, gamma, beta); });
    expect_near(result.dz, dz, "dz " + c.name(), tolerance);
    if (c.threshold > 0) expect_near(result.dx, run.dropped(dz), "dx " + c.name(), tolerance);
  }
}

TEST_P(LayerNormBackward, AccumulatesIntoExistingGradients) {
  for (const LayerNormCase& c : kSmallCases) {
    const LayerNormRun run(c, device());
    const Result result = run.run();
    const auto z = result.z.doubles();
    const auto gamma = run.gamma().doubles();
    const auto beta = run.beta().doubles();
    const auto dgamma = numeric_gradient(gamma, [&](const auto& at) { return run.loss(z, at, beta); });
    const auto dbeta = numeric_gradient(beta, [&](const auto& at) { return run.loss(z, gamma, at); });
    expect_near(result.dgamma, plus(run.dgamma().doubles(), dgamma), "dgamma " + c.name(), kGradientRelative);
    expect_near(result.dbeta, plus(run.dbeta().doubles(), dbeta), "dbeta " + c.name(), kGradientRelative);
  }
}

TEST_P(LayerNormBackward, AgreesWithTheReference) {
  for (const LayerNormCase& c : all_cases()) {
    const LayerNormRun run(c, device());
    const Result result = run.run();
    const reference::LayerNormGradient expected = run.expected_gradient(result.z);
    expect_near(result.dz, expected.dz, "dz " + c.name(), compute_tolerance(device()));
    if (c.threshold > 0)
      expect_near(result.dx, run.dropped(expected.dz), "dx " + c.name(), compute_tolerance(device()));
    expect_near(result.dgamma, plus(run.dgamma().doubles(), expected.dgamma), "dgamma " + c.name());
    expect_near(result.dbeta, plus(run.dbeta().doubles(), expected.dbeta), "dbeta " + c.name());
  }
}

TEST_P(LayerNormBackward, WritesOverItsInput) {
  const LayerNormRun run({37, 1024, 26}, device());
  EXPECT_EQ(run.run(Place::Apart), run.run(Place::OverItsInput));
}

TEST_P(LayerNorm, WritesTheSameBytesTwice) {
  const LayerNormRun run({1000, 1024, 26}, device());
  EXPECT_EQ(run.run(), run.run());
}

TEST(LayerNormOfThreads, WritesTheSameBytesForAnyNumberOfThreads) {
  const LayerNormRun run({1000, 37, 26}, tensor::Device::Cpu);
  EXPECT_EQ(run.run(), run.run_threads(3));
}

TEST_P(LayerNorm, DoesNothingWithoutRows) {
  const LayerNormRun run({0, 8, 26}, device());
  EXPECT_EQ(run.run().dgamma, run.dgamma());
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
