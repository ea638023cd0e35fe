#include "plenum/kernels/layer_norm.h"

#include <gtest/gtest.h>

#include "tests/ops/op_testing.h"
#include "tests/reference/layer_norm.h"

namespace plenum::kernels {
namespace {

using ops::OpContext;
using ops::TestTensor;

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

const std::vector<LayerNormCase> kCases = {{1, 3, 0},   {1, 4, 26},  {3, 16, 0},         {3, 16, 26},
                                           {2, 5, 128}, {7, 33, 26}, {20, 31, 0, false}, {9, 48, 26, false}};

struct Result {
  TestTensor<float> z, y, mean, inverse_deviation;
  TestTensor<float> dz, dx, dgamma, dbeta;
  friend bool operator==(const Result&, const Result&) = default;
};

// Arguments of a case, and what the op makes of them.
class LayerNormRun {
 public:
  explicit LayerNormRun(const LayerNormCase& c)
      : case_(c),
        dropout_{.threshold = c.threshold,
                 .key = base::RandomFunction(9, base::Purpose::Dropout, 4).key(),
                 .layer = 3,
                 .site = DropoutSite::AttentionOutput},
        samples_({c.rows}),
        positions_({c.rows}),
        x_(ops::random_tensor({c.rows, c.width}, 1)),
        residual_(ops::random_tensor({c.rows, c.width}, 2)),
        gamma_(ops::random_tensor({c.width}, 3)),
        beta_(ops::random_tensor({c.width}, 4)),
        dy_(ops::random_tensor({c.rows, c.width}, 5)),
        dgamma_(ops::random_tensor({c.width}, 6)),
        dbeta_(ops::random_tensor({c.width}, 7)) {
    for (std::size_t row = 0; row < samples_.values().size(); ++row) {
      samples_.values()[row] = static_cast<std::int64_t>((std::uint64_t{1} << 40) + row / 3);
      positions_.values()[row] = static_cast<std::int32_t>(row % 3);
    }
  }

  Result run(std::size_t num_threads = 1) const {
    const OpContext context(num_threads, layer_norm_scratch_bytes(tensor::Device::Cpu, case_.width) + 64);
    const tensor::Shape shape = {case_.rows, case_.width};
    Result r{.z = TestTensor<float>(shape, 9.0F),
             .y = TestTensor<float>(shape, 9.0F),
             .mean = TestTensor<float>({case_.rows}, 9.0F),
             .inverse_deviation = TestTensor<float>({case_.rows}, 9.0F),
             .dz = TestTensor<float>(shape, 9.0F),
             .dx = TestTensor<float>(shape, 9.0F),
             .dgamma = dgamma_,
             .dbeta = dbeta_};
    LayerNormForward forward = forward_arguments();
    forward.z_TD = r.z;
    forward.y_TD = r.y;
    forward.mean_T = r.mean;
    forward.inverse_deviation_T = r.inverse_deviation;
    layer_norm_forward(context.stream(), forward);
    layer_norm_backward(context.stream(), {.dy_TD = dy_,
                                           .z_TD = r.z,
                                           .mean_T = r.mean,
                                           .inverse_deviation_T = r.inverse_deviation,
                                           .gamma_D = gamma_,
                                           .dropout = dropout_,
                                           .rows = rows(),
                                           .dz_TD = r.dz,
                                           .dx_TD = dropout_.is_on() ? r.dx.view() : tensor::TensorView(),
                                           .dgamma_D = r.dgamma,
                                           .dbeta_D = r.dbeta});
    return r;
  }

  // y is left to the caller, who may let it lie elsewhere.
  LayerNormForward forward_arguments() const {
    LayerNormForward forward;
    forward.x_TD = x_;
    if (case_.has_residual) forward.residual_TD = residual_;
    forward.gamma_D = gamma_;
    forward.beta_D = beta_;
    forward.epsilon = kEpsilon;
    forward.dropout = dropout_;
    forward.rows = rows();
    return forward;
  }

  RowIdentities rows() const { return {.sample_T = samples_, .position_T = positions_}; }

  reference::LayerNorm expected() const {
    return evaluate(x_.doubles(), residual_.doubles(), gamma_.doubles(), beta_.doubles());
  }

  double loss(const std::vector<double>& x, const std::vector<double>& residual,
              const std::vector<double>& gamma, const std::vector<double>& beta) const {
    return ops::dot(evaluate(x, residual, gamma, beta).y, dy_.doubles());
  }

  const TestTensor<float>& x() const { return x_; }
  const TestTensor<float>& residual() const { return residual_; }
  const TestTensor<float>& gamma() const { return gamma_; }
  const TestTensor<float>& beta() const { return beta_; }
  const TestTensor<float>& dgamma() const { return dgamma_; }
  const TestTensor<float>& dbeta() const { return dbeta_; }

 private:
  reference::LayerNorm evaluate(const std::vector<double>& x, const std::vector<double>& residual,
                                const std::vector<double>& gamma, const std::vector<double>& beta) const {
    std::vector<double> z = reference::drop_rows(dropout_, x, samples_.values(), positions_.values());
    if (case_.has_residual) z = ops::plus(z, residual);
    return reference::layer_norm(z, gamma, beta, kEpsilon);
  }

  LayerNormCase case_;
  Dropout dropout_;
  TestTensor<std::int64_t> samples_;
  TestTensor<std::int32_t> positions_;
  TestTensor<float> x_, residual_, gamma_, beta_, dy_, dgamma_, dbeta_;
};

TEST(LayerNormForward, AgreesWithTheReference) {
  for (const LayerNormCase& c : kCases) {
    const LayerNormRun run(c);
    const Result result = run.run();
    const reference::LayerNorm expected = run.expected();
    ops::expect_near(result.z, expected.z, "z " + c.name());
    ops::expect_near(result.y, expected.y, "y " + c.name());
    ops::expect_near(result.mean, expected.mean, "mean " + c.name());
    ops::expect_near(result.inverse_deviation, expected.inverse_deviation, "inverse deviation " + c.name());
  }
}

TEST(LayerNormForward, KeepsItsPrecisionFarFromZero) {
  LayerNormForward args = LayerNormRun({1, 64, 0, false}).forward_arguments();
  TestTensor<float> x = ops::random_tensor({1, 64}, 8);
  for (float& value : x.values()) value += 1000;
  const TestTensor<float> gamma({64}, 1.0F);
  const TestTensor<float> beta({64}, 0.0F);
  TestTensor<float> y({1, 64});
  args.x_TD = x;
  args.gamma_D = gamma;
  args.beta_D = beta;
  args.y_TD = y;
  const OpContext context;
  layer_norm_forward(context.stream(), args);
  // The mean is rounded to 1000's last place, 3e-5 of the deviation at most.
  ops::expect_near(y, reference::layer_norm(x.doubles(), gamma.doubles(), beta.doubles(), kEpsilon).y, "y",
                   1e-4);
}

TEST(LayerNormForward, WritesOverItsInputsWhereAllowed) {
  const LayerNormRun run({7, 33, 26});
  const Result apart = run.run();
  const OpContext context;
  {
    TestTensor<float> residual = run.residual();
    LayerNormForward args = run.forward_arguments();
    args.residual_TD = residual;
    args.y_TD = residual;
    layer_norm_forward(context.stream(), args);
    EXPECT_EQ(residual, apart.y) << "y in place of the residual, z left out";
  }
  {
    TestTensor<float> x = run.x();
    TestTensor<float> y = run.residual();
    LayerNormForward args = run.forward_arguments();
    args.x_TD = x;
    args.z_TD = x;
    args.y_TD = y;
    layer_norm_forward(context.stream(), args);
    EXPECT_EQ(x, apart.z) << "z in place of x";
    EXPECT_EQ(y, apart.y);
  }
}

TEST(LayerNormBackward, AgreesWithDifferencesOfTheReference) {
  for (const LayerNormCase& c : kCases) {
    const LayerNormRun run(c);
    const Result result = run.run();
    const auto x = run.x().doubles();
    const auto residual = run.residual().doubles();
    const auto gamma = run.gamma().doubles();
    const auto beta = run.beta().doubles();
    const auto dx =
        ops::numeric_gradient(x, [&](const auto& at) { return run.loss(at, residual, gamma, beta); });
    ops::expect_near(c.threshold > 0 ? result.dx : result.dz, dx, "dx " + c.name(), ops::kGradientRelative);
    if (c.has_residual) {
      const auto dz =
          ops::numeric_gradient(residual, [&](const auto& at) { return run.loss(x, at, gamma, beta); });
      ops::expect_near(result.dz, dz, "dz " + c.name(), ops::kGradientRelative);
    }
  }
}

TEST(LayerNormBackward, AccumulatesIntoExistingGradients) {
  for (const LayerNormCase& c : kCases) {
    const LayerNormRun run(c);
    const Result result = run.run();
    const auto x = run.x().doubles();
    const auto residual = run.residual().doubles();
    const auto gamma = run.gamma().doubles();
    const auto beta = run.beta().doubles();
    const auto dgamma =
        ops::numeric_gradient(gamma, [&](const auto& at) { return run.loss(x, residual, at, beta); });
    const auto dbeta =
        ops::numeric_gradient(beta, [&](const auto& at) { return run.loss(x, residual, gamma, at); });
    ops::expect_near(result.dgamma, ops::plus(run.dgamma().doubles(), dgamma), "dgamma " + c.name(),
                     ops::kGradientRelative);
    ops::expect_near(result.dbeta, ops::plus(run.dbeta().doubles(), dbeta), "dbeta " + c.name(),
                     ops::kGradientRelative);
  }
}

TEST(LayerNorm, WritesTheSameBytesTwiceAndForAnyNumberOfThreads) {
  const LayerNormRun run({1000, 37, 26});
  const Result once = run.run(1);
  EXPECT_EQ(once, run.run(1));
  EXPECT_EQ(once, run.run(3));
}

TEST(LayerNorm, DoesNothingWithoutRows) {
  const LayerNormRun run({0, 8, 26});
  EXPECT_EQ(run.run().dgamma, run.dgamma());
}

TEST(LayerNormForward, RefusesArgumentsThatDoNotFit) {
  const LayerNormRun run({2, 4, 26});
  const OpContext context;
  LayerNormForward args = run.forward_arguments();
  TestTensor<float> narrow({2, 3});
  args.y_TD = narrow;
  EXPECT_THROW(layer_norm_forward(context.stream(), args), base::InternalError);
  TestTensor<float> y({2, 4});
  args.y_TD = y;
  args.rows = {};
  EXPECT_THROW(layer_norm_forward(context.stream(), args), base::InternalError);
}

}  // namespace
}  // namespace plenum::kernels
