#include "tests/ops/mlp_gelu_run.h"
#include "tests/ops/table/op_table.h"

namespace plenum::ops {
namespace {

struct MlpGeluOptions {
  std::int64_t T, D, F;
};

class MlpGeluCase final : public OpCase {
 public:
  MlpGeluCase(tensor::Device device, const MlpGeluOptions& o)
      : mlp_{device, o.T, o.D, o.F}, before_F_(mlp_.db1_F) {}

  std::size_t scratch_bytes() const override {
    return kernels::mlp_gelu_scratch_bytes(mlp_.device, mlp_.T, mlp_.F);
  }
  std::vector<OpCall> calls(Arguments& arguments) override {
    const auto [forward, backward] = mlp_.bind(arguments);
    const double flops = 2.0 * static_cast<double>(mlp_.T * mlp_.D * mlp_.F);
    return {{"mlp_gelu_forward",
             [args = forward](const auto& stream) { kernels::mlp_gelu_forward(stream, args); }, flops,
             bytes_of({forward.x_TD, forward.w1_FD, forward.b1_F, forward.h_TF, forward.kept_TF})},
            {"mlp_gelu_backward",
             [args = backward](const auto& stream) { kernels::mlp_gelu_backward(stream, args); }, flops,
             bytes_of({backward.dy_TD, backward.w2_DF, backward.kept_TF, backward.du_TF, backward.db1_F,
                       backward.db1_F})}};
  }
  std::vector<OpResult> results() const override {
    const std::vector<double> du = mlp_.expected_du(mlp_.T);
    const double tolerance = gelu_gradient_tolerance(mlp_.device);
    std::vector<OpResult> results = {
        {"h", mlp_.h_TF.doubles(), mlp_.expected_h(mlp_.T), compute_tolerance(mlp_.device)},
        {"du", mlp_.du_TF.doubles(), du, tolerance},
        {"db1", mlp_.db1_F.doubles(),
         plus(before_F_.doubles(), reference::column_sums(du, before_F_.values().size())),
         mlp_.T == 0 ? 0 : tolerance}};
    if (mlp_.device == tensor::Device::Cpu) {  // on a GPU it is for backward alone to read
      results.push_back({"kept", mlp_.kept_TF.doubles(), mlp_.expected_u(mlp_.T), kFloat32Relative});
    }
    return results;
  }
  std::vector<OpGradient> gradients() const override {
    const double tolerance = std::max(kGradientRelative, gelu_gradient_tolerance(mlp_.device));
    const std::vector<double> u = mlp_.expected_u(mlp_.T);
    const auto loss = [this](std::vector<double> at) {
      for (double& value : at) value = reference::gelu(value);
      return dot(reference::linear(mlp_.second_map(mlp_.T), at, mlp_.w2_DF.doubles(), {}),
                 mlp_.dy_TD.doubles());
    };
    return {{"du", mlp_.du_TF.doubles(), {}, u, loss, tolerance},
            {"db1", mlp_.db1_F.doubles(), before_F_.doubles(), std::vector<double>(before_F_.values().size()),
             [=](const std::vector<double>& shift) {
               std::vector<double> at = u;
               for (std::size_t i = 0; i < at.size(); ++i) at[i] += shift[i % shift.size()];
               return loss(at);
             },
             tolerance}};
  }

 private:
  MlpGelu mlp_;
  TestTensor<float> before_F_;
};

OpShape shape(const MlpGeluOptions& o, bool has_differences = false) {
  return op_shape<MlpGeluCase>(fmt::format("T={} D={} F={}", o.T, o.D, o.F), o, has_differences);
}

}  // namespace

OpDescriptor mlp_gelu_op() {
  return {.name = "mlp_gelu",
          .functions = {"mlp_gelu_forward", "mlp_gelu_backward"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            // Some that tensor cores like, and some with enough rows for the kernels of Hopper, on either
            // side of where these begin; none is a whole number of their tiles.
            return {shape({3, 7, 5}, true), shape({6, 24, 16}, true), shape({0, 5, 7}),
                    shape({1, 1, 1}),       shape({5, 8, 16}),        shape({37, 19, 67}),
                    shape({64, 64, 256}),   shape({300, 264, 72}),    shape({1023, 64, 64}),
                    shape({1024, 64, 64}),  shape({1100, 64, 320}),   shape({1100, 320, 64}),
                    shape({1100, 72, 320}), shape({1025, 448, 192}),  shape({2049, 128, 128})};
          },
          .typical = shape({4096, 768, 3072})};
}

}  // namespace plenum::ops
