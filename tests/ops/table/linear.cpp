#include "plenum/kernels/linear.h"

#include <fmt/format.h>

#include "tests/ops/table/op_table.h"
#include "tests/reference/linear.h"

namespace plenum::ops {
namespace {

using kernels::Accumulate;

struct LinearOptions {
  std::int64_t T, D, E;
  bool has_bias = true;
  Accumulate dx = Accumulate::No;
  Accumulate dw = Accumulate::Yes;
};

class LinearCase final : public OpCase {
 public:
  LinearCase(tensor::Device device, const LinearOptions& options)
      : device_(device),
        options_(options),
        shape_{static_cast<std::size_t>(options.T), static_cast<std::size_t>(options.D),
               static_cast<std::size_t>(options.E)},
        x_TD_(rounded(random_tensor({options.T, options.D}, 1), device)),
        w_ED_(rounded(random_tensor({options.E, options.D}, 2, 0.5), device)),
        b_E_(rounded(random_tensor({options.E}, 3), device)),
        dy_TE_(rounded(random_tensor({options.T, options.E}, 4), device)),
        y_TE_({options.T, options.E}, NAN),
        dx_TD_(begun(options.dx, rounded(random_tensor({options.T, options.D}, 8), device))),
        dw_ED_(begun(options.dw, random_tensor({options.E, options.D}, 9))),
        db_E_(random_tensor({options.E}, 10)) {}

  std::size_t scratch_bytes() const override { return kernels::linear_scratch_bytes(device_); }

  std::vector<OpCall> calls(Arguments& arguments) override {
    const tensor::ConstTensorView x = arguments.in_compute(x_TD_);
    const tensor::ConstTensorView w = arguments.in_compute(w_ED_);
    const tensor::ConstTensorView dy = arguments.in_compute(dy_TE_);
    const kernels::LinearForward forward = {
        .x_TD = x,
        .w_ED = w,
        .b_E = options_.has_bias ? arguments.in_compute(b_E_) : tensor::ConstTensorView(),
        .y_TE = arguments.out_compute(y_TE_)};
    const kernels::LinearBackwardInput input = {
        .dy_TE = dy, .w_ED = w, .dx_TD = arguments.out_compute(dx_TD_), .accumulate = options_.dx};
    const kernels::LinearBackwardWeight weight = {.x_TD = x,
                                                  .dy_TE = dy,
                                                  .dw_ED = arguments.out(dw_ED_),
                                                  .db_E = arguments.out(db_E_),
                                                  .accumulate = options_.dw};
    const double flops = 2.0 * static_cast<double>(options_.T * options_.D * options_.E);
    return {
        {"linear_forward", [=](const auto& stream) { kernels::linear_forward(stream, forward); }, flops,
         bytes_of({x, w, forward.b_E, forward.y_TE})},
        {"linear_backward_input", [=](const auto& stream) { kernels::linear_backward_input(stream, input); },
         flops, bytes_of({dy, w, input.dx_TD})},
        {"linear_backward_weight",
         [=](const auto& stream) { kernels::linear_backward_weight(stream, weight); }, flops,
         bytes_of({x, dy, weight.dw_ED, weight.dw_ED, weight.db_E, weight.db_E})}};
  }

  std::vector<OpResult> results() const override {
    const double added = options_.T == 0 ? 0 : kFloat32Relative;  // without rows, to the bit
    return {{"y", y_TE_.doubles(), forward(x_TD_.doubles(), w_ED_.doubles(), b_E_.doubles()),
             compute_tolerance(device_)},
            {"dx", dx_TD_.doubles(),
             plus_before(options_.dx, rounded(random_tensor(x_TD_.shape(), 8), device_),
                         reference::linear_dx(shape_, dy_TE_.doubles(), w_ED_.doubles())),
             compute_tolerance(device_)},
            {"dw", dw_ED_.doubles(),
             plus_before(options_.dw, random_tensor(w_ED_.shape(), 9),
                         reference::linear_dw(shape_, x_TD_.doubles(), dy_TE_.doubles())),
             added},
            {"db", db_E_.doubles(),
             plus(random_tensor(b_E_.shape(), 10).doubles(), reference::linear_db(shape_, dy_TE_.doubles())),
             added}};
  }

  std::vector<OpGradient> gradients() const override {
    const std::vector<double> x = x_TD_.doubles(), w = w_ED_.doubles(), b = b_E_.doubles();
    const std::vector<double> dy = dy_TE_.doubles();
    const auto loss = [=, this](const std::vector<double>& at_x, const std::vector<double>& at_w,
                                const std::vector<double>& at_b) {
      return dot(reference::linear(shape_, at_x, at_w, at_b), dy);
    };
    return {{"dx",
             dx_TD_.doubles(),
             {},
             x,
             [=](const auto& at) { return loss(at, w, b); },
             compute_gradient_tolerance(device_)},
            {"dw", dw_ED_.doubles(), random_tensor(w_ED_.shape(), 9).doubles(), w,
             [=](const auto& at) { return loss(x, at, b); }, kFloat32Gradient},
            {"db", db_E_.doubles(), random_tensor(b_E_.shape(), 10).doubles(), b,
             [=](const auto& at) { return loss(x, w, at); }, kFloat32Gradient}};
  }

 private:
  /// What is overwritten holds nothing that may be read.
  static TestTensor<float> begun(Accumulate accumulate, TestTensor<float> before) {
    return accumulate == Accumulate::Yes ? before : TestTensor<float>(before.shape(), NAN);
  }
  static std::vector<double> plus_before(Accumulate accumulate, const TestTensor<float>& before,
                                         std::vector<double> gradient) {
    return accumulate == Accumulate::Yes ? plus(std::move(gradient), before.doubles()) : gradient;
  }
  std::vector<double> forward(const std::vector<double>& x, const std::vector<double>& w,
                              const std::vector<double>& b) const {
    return reference::linear(shape_, x, w, options_.has_bias ? b : std::vector<double>());
  }

  tensor::Device device_;
  LinearOptions options_;
  reference::LinearShape shape_;
  TestTensor<float> x_TD_, w_ED_, b_E_, dy_TE_, y_TE_, dx_TD_, dw_ED_, db_E_;
};

OpShape shape(const LinearOptions& o, bool has_differences = false) {
  return op_shape<LinearCase>(
      fmt::format("T={} D={} E={}{}{}{}", o.T, o.D, o.E, o.has_bias ? "" : " without bias",
                  o.dx == Accumulate::Yes ? " dx added" : "",
                  o.dw == Accumulate::No ? " dw overwritten" : ""),
      o, has_differences);
}

}  // namespace

OpDescriptor linear_op() {
  return {.name = "linear",
          .functions = {"linear_forward", "linear_backward_input", "linear_backward_weight"},
          .shapes =
              [](tensor::Device) {
                // A single column as next-sentence logits have two, some that tensor cores like, many rows.
                std::vector<OpShape> shapes = {shape({3, 5, 7}, true), shape({0, 5, 7})};
                for (const LinearOptions& o : std::vector<LinearOptions>{{1, 1, 1},
                                                                         {1, 40, 3},
                                                                         {5, 8, 16},
                                                                         {37, 67, 19},
                                                                         {130, 20, 70},
                                                                         {64, 256, 64},
                                                                         {7, 600, 130},
                                                                         {33, 128, 2},
                                                                         {300, 72, 264}}) {
                  shapes.push_back(shape(o));
                  shapes.push_back(shape({o.T, o.D, o.E, false, Accumulate::Yes, Accumulate::No}));
                }
                shapes.push_back(shape({0, 8, 16, true, Accumulate::No, Accumulate::No}));
                shapes.push_back(shape({3001, 8, 9}));
                shapes.push_back(shape({1500, 128, 264}));
                return shapes;
              },
          .typical = shape({4096, 768, 3072})};
}

}  // namespace plenum::ops
