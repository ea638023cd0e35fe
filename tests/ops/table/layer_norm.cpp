#include "tests/ops/layer_norm_run.h"
#include "tests/ops/table/op_table.h"
#include "tests/reference/linear.h"

namespace plenum::ops {
namespace {

struct LayerNormOptions {
  LayerNormShape shape;
  Place place = Place::Apart;
  Bias bias = Bias::Yes;
};

class LayerNormCase final : public OpCase {
 public:
  LayerNormCase(tensor::Device device, const LayerNormOptions& o)
      : device_(device), options_(o), run_(o.shape, device), result_(run_.begun(o.place)) {}

  std::size_t scratch_bytes() const override { return run_.scratch_bytes(); }
  std::vector<OpCall> calls(Arguments& arguments) override {
    const auto [forward, backward] = run_.bind(arguments, result_, options_.place, options_.bias);
    return {{"layer_norm_forward",
             [args = forward](const auto& stream) { kernels::layer_norm_forward(stream, args); }, 0,
             bytes_of({forward.x_TD, forward.residual_TD, forward.z_TD, forward.y_TD})},
            {"layer_norm_backward",
             [args = backward](const auto& stream) { kernels::layer_norm_backward(stream, args); }, 0,
             bytes_of({backward.dy_TD, backward.z_TD, backward.dz_TD, backward.dx_TD})}};
  }
  std::vector<OpResult> results() const override {
    const double compute = compute_tolerance(device_);
    const reference::LayerNorm forward = run_.expected(result_.z);
    const reference::LayerNormGradient backward = run_.expected_gradient(result_.z);
    const std::vector<double> dx = run_.dropped(backward.dz);
    const double added = options_.shape.rows == 0 ? 0 : kFloat32Relative;  // without rows, to the bit
    const std::vector<double> db =
        options_.bias == Bias::Yes
            ? plus(run_.db().doubles(),
                   reference::column_sums(dx, static_cast<std::size_t>(options_.shape.width)))
            : run_.db().doubles();
    std::vector<OpResult> results = {
        {"z", result_.z.doubles(), run_.expected_z(), compute},
        {"y", result_.y.doubles(), forward.y, compute},
        {"mean", result_.mean.doubles(), forward.mean, kFloat32Relative},
        {"inverse deviation", result_.inverse_deviation.doubles(), forward.inverse_deviation,
         kFloat32Relative},
        {"dz", result_.dz.doubles(), backward.dz, compute},
        {"dgamma", result_.dgamma.doubles(), plus(run_.dgamma().doubles(), backward.dgamma), added},
        {"dbeta", result_.dbeta.doubles(), plus(run_.dbeta().doubles(), backward.dbeta), added},
        {"db", result_.db.doubles(), db, options_.bias == Bias::Yes ? added : 0}};
    if (options_.shape.threshold > 0) results.push_back({"dx", result_.dx.doubles(), dx, compute});
    return results;
  }
  std::vector<OpGradient> gradients() const override {
    const std::vector<double> z = result_.z.doubles(), gamma = run_.gamma().doubles(),
                              beta = run_.beta().doubles();
    return {{"dz",
             result_.dz.doubles(),
             {},
             z,
             [=, this](const auto& at) { return run_.loss(at, gamma, beta); },
             compute_gradient_tolerance(device_)},
            {"dgamma", result_.dgamma.doubles(), run_.dgamma().doubles(), gamma,
             [=, this](const auto& at) { return run_.loss(z, at, beta); }, kFloat32Gradient},
            {"dbeta", result_.dbeta.doubles(), run_.dbeta().doubles(), beta,
             [=, this](const auto& at) { return run_.loss(z, gamma, at); }, kFloat32Gradient}};
  }

 private:
  tensor::Device device_;
  LayerNormOptions options_;
  LayerNormRun run_;
  LayerNormResult result_;
};

OpShape shape(const LayerNormOptions& o, bool has_differences = false) {
  return op_shape<LayerNormCase>(
      fmt::format("{}{}{}", o.shape.name(), o.place == Place::Apart ? "" : " over its input",
                  o.bias == Bias::Yes ? "" : " without bias"),
      o, has_differences);
}

}  // namespace

OpDescriptor layer_norm_op() {
  return {.name = "layer_norm",
          .functions = {"layer_norm_forward", "layer_norm_backward"},
          .shapes =
              [](tensor::Device) {
                std::vector<OpShape> shapes;
                for (const LayerNormShape& small : std::vector<LayerNormShape>{{1, 3, 0},
                                                                               {1, 4, 26},
                                                                               {3, 16, 0},
                                                                               {3, 16, 26},
                                                                               {2, 5, 128},
                                                                               {7, 33, 26},
                                                                               {20, 31, 0, false},
                                                                               {9, 48, 26, false}}) {
                  shapes.push_back(shape({small}, true));
                }
                // Widths of models, wider ones, and ones that are no multiple of eight; rows that fill no
                // block.
                for (const LayerNormShape& large : std::vector<LayerNormShape>{{0, 8, 26},
                                                                               {2051, 128, 26},
                                                                               {70, 768, 26},
                                                                               {2050, 1024, 26},
                                                                               {3, 1024, 0},
                                                                               {9, 1100, 255},
                                                                               {66, 2048, 26, false},
                                                                               {5, 4096, 26}}) {
                  shapes.push_back(shape({large}));
                }
                shapes.push_back(shape({{37, 1024, 26}, Place::OverItsInput, Bias::No}));
                return shapes;
              },
          .typical = shape({{4096, 768, 26}})};
}

}  // namespace plenum::ops
