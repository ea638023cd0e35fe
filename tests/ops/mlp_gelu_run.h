#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plenum/kernels/mlp_gelu.h"

#include "tests/ops/op_arguments.h"
#include "tests/reference/activation.h"
#include "tests/reference/linear.h"

namespace plenum::ops {

/// How far gradients behind a GELU may be off.
inline double gelu_gradient_tolerance(tensor::Device device) {
  return device == tensor::Device::Cpu ? kFloat32Relative : kBFloat16TwiceRelative;
}

/// Random arguments, and a gradient that is not zero at first. The standard deviation of u is 2.1: of its
/// elements one in 18 is beyond 4 or -4, where GELU and its derivative have reached their tails.
struct MlpGelu {
  tensor::Device device;
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
    kernels::mlp_gelu_forward(context.stream(), {.x_TD = arguments.in_compute(x_TD),
                                                 .w1_FD = arguments.in_compute(w1_FD),
                                                 .b1_F = arguments.in_compute(b1_F),
                                                 .h_TF = arguments.out_compute(h_TF)});
    arguments.fetch();
  }
  struct Bound {
    kernels::MlpGeluForward forward;
    kernels::MlpGeluBackward backward;
  };
  Bound bind(Arguments& arguments) {
    const tensor::TensorView kept = arguments.out_compute(kept_TF);
    return {.forward = {.x_TD = arguments.in_compute(x_TD),
                        .w1_FD = arguments.in_compute(w1_FD),
                        .b1_F = arguments.in_compute(b1_F),
                        .h_TF = arguments.out_compute(h_TF),
                        .kept_TF = kept},
            .backward = {.dy_TD = arguments.in_compute(dy_TD),
                         .w2_DF = arguments.in_compute(w2_DF),
                         .kept_TF = kept,
                         .du_TF = arguments.out_compute(du_TF),
                         .db1_F = arguments.out(db1_F)}};
  }
  void run(const OpContext& context) {
    Arguments arguments(context);
    const Bound bound = bind(arguments);
    kernels::mlp_gelu_forward(context.stream(), bound.forward);
    kernels::mlp_gelu_backward(context.stream(), bound.backward);
    arguments.fetch();
  }

  bool has_same_results(const MlpGelu& other) const {
    return h_TF == other.h_TF && kept_TF == other.kept_TF && du_TF == other.du_TF && db1_F == other.db1_F;
  }
};

}  // namespace plenum::ops
