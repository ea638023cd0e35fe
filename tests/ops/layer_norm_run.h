#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "plenum/kernels/layer_norm.h"

#include "tests/ops/op_arguments.h"
#include "tests/reference/layer_norm.h"

namespace plenum::ops {

inline constexpr float kLayerNormEpsilon = 1e-5F;

struct LayerNormShape {
  std::int64_t rows;
  std::int64_t width;
  std::uint32_t threshold;
  bool has_residual = true;

  std::string name() const {
    return fmt::format("T={} D={} threshold={} residual={}", rows, width, threshold, has_residual);
  }
};

/// Where the gradient of the residual goes.
enum class Place : std::uint8_t { Apart, OverItsInput };
/// Whether the gradient of the bias is asked for.
enum class Bias : std::uint8_t { No, Yes };

struct LayerNormResult {
  TestTensor<float> z, y, mean, inverse_deviation;
  TestTensor<float> dz, dx, dgamma, dbeta, db;
  friend bool operator==(const LayerNormResult&, const LayerNormResult&) = default;
};

// Arguments of a case, and what the op makes of them.
class LayerNormRun {
 public:
  LayerNormRun(const LayerNormShape& c, tensor::Device device)
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
        dbeta_(random_tensor({c.width}, 7)),
        db_(random_tensor({c.width}, 8)) {
    for (std::size_t row = 0; row < samples_.values().size(); ++row) {
      samples_.values()[row] = static_cast<std::int64_t>((std::uint64_t{1} << 40) + row / 3);
      positions_.values()[row] = static_cast<std::int32_t>(row % 3);
    }
  }

  LayerNormResult run(Place place = Place::Apart, Bias bias = Bias::Yes) const {
    return run(OpContext(device_, scratch_bytes()), place, bias);
  }

  /// What lies where results go, beforehand. `place` says where dz lies.
  LayerNormResult begun(Place place) const {
    const tensor::Shape shape = {case_.rows, case_.width};
    return {.z = TestTensor<float>(shape, 9.0F),
            .y = TestTensor<float>(shape, 9.0F),
            .mean = TestTensor<float>({case_.rows}, 9.0F),
            .inverse_deviation = TestTensor<float>({case_.rows}, 9.0F),
            .dz = place == Place::Apart ? TestTensor<float>(shape, 9.0F) : dy_,
            .dx = TestTensor<float>(shape, 9.0F),
            .dgamma = dgamma_,
            .dbeta = dbeta_,
            .db = db_};
  }

  struct Bound {
    kernels::LayerNormForward forward;
    kernels::LayerNormBackward backward;
  };
  /// Borrows the results until they are fetched.
  Bound bind(Arguments& arguments, LayerNormResult& r, Place place, Bias bias) const {
    kernels::LayerNormForward forward = forward_arguments(arguments);
    forward.z_TD = arguments.out_compute(r.z);
    forward.y_TD = arguments.out_compute(r.y);
    forward.mean_T = arguments.out(r.mean);
    forward.inverse_deviation_T = arguments.out(r.inverse_deviation);
    const tensor::TensorView dz_TD = arguments.out_compute(r.dz);
    return {.forward = forward,
            .backward = {.dy_TD = place == Place::Apart ? arguments.in_compute(dy_) : dz_TD,
                         .z_TD = forward.z_TD,
                         .mean_T = forward.mean_T,
                         .inverse_deviation_T = forward.inverse_deviation_T,
                         .gamma_D = forward.gamma_D,
                         .dropout = dropout_,
                         .rows = forward.rows,
                         .dz_TD = dz_TD,
                         .dx_TD = dropout_.is_on() ? arguments.out_compute(r.dx) : tensor::TensorView(),
                         .dgamma_D = arguments.out(r.dgamma),
                         .dbeta_D = arguments.out(r.dbeta),
                         .db_D = bias == Bias::Yes ? arguments.out(r.db) : tensor::TensorView()}};
  }

  /// z, y and the moments are left to the caller, who may let them lie elsewhere.
  kernels::LayerNormForward forward_arguments(Arguments& arguments) const {
    kernels::LayerNormForward forward;
    forward.x_TD = arguments.in_compute(x_);
    if (case_.has_residual) forward.residual_TD = arguments.in_compute(residual_);
    forward.gamma_D = arguments.in(gamma_);
    forward.beta_D = arguments.in(beta_);
    forward.epsilon = kLayerNormEpsilon;
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
    return reference::layer_norm(z.doubles(), gamma_.doubles(), beta_.doubles(), kLayerNormEpsilon);
  }
  reference::LayerNormGradient expected_gradient(const TestTensor<float>& z) const {
    return reference::layer_norm_gradient(z.doubles(), gamma_.doubles(), dy_.doubles(), kLayerNormEpsilon);
  }
  double loss(const std::vector<double>& z, const std::vector<double>& gamma,
              const std::vector<double>& beta) const {
    return dot(reference::layer_norm(z, gamma, beta, kLayerNormEpsilon).y, dy_.doubles());
  }

  std::size_t scratch_bytes() const { return kernels::layer_norm_scratch_bytes(device_, case_.width) + 64; }
  const TestTensor<float>& x() const { return x_; }
  const TestTensor<float>& residual() const { return residual_; }
  const TestTensor<float>& gamma() const { return gamma_; }
  const TestTensor<float>& beta() const { return beta_; }
  const TestTensor<float>& dgamma() const { return dgamma_; }
  const TestTensor<float>& dbeta() const { return dbeta_; }
  const TestTensor<float>& db() const { return db_; }

 private:
  kernels::RowIdentities rows(Arguments& arguments) const {
    return {.sample_T = arguments.in(samples_), .position_T = arguments.in(positions_)};
  }

  LayerNormResult run(const OpContext& context, Place place, Bias bias) const {
    LayerNormResult result = begun(place);
    Arguments arguments(context);
    const Bound bound = bind(arguments, result, place, bias);
    kernels::layer_norm_forward(context.stream(), bound.forward);
    kernels::layer_norm_backward(context.stream(), bound.backward);
    arguments.fetch();
    return result;
  }

  LayerNormShape case_;
  tensor::Device device_;
  kernels::Dropout dropout_;
  TestTensor<std::int64_t> samples_;
  TestTensor<std::int32_t> positions_;
  TestTensor<float> x_, residual_, gamma_, beta_, dy_, dgamma_, dbeta_, db_;
};

}  // namespace plenum::ops
