#include "plenum/kernels/squared_loss.h"

#include <bit>

#include <fmt/format.h>

#include "tests/ops/table/op_table.h"
#include "tests/reference/squared_loss.h"

namespace plenum::ops {
namespace {

constexpr double kSquaredScale = 0.25;

class SquaredLossCase final : public OpCase {
 public:
  SquaredLossCase(tensor::Device device, std::int64_t rows)
      : device_(device),
        logits_M1_(rounded(random_tensor({rows, 1}, 1, 4), device)),
        label_M_({rows}),
        loss_M_({rows}, NAN),
        dlogits_M1_({rows, 1}, NAN) {
    // Numbers of either sign, and no label.
    const TestTensor<float> numbers = random_tensor({rows}, 2, 4);
    for (std::size_t row = 0; row < label_M_.values().size(); ++row)
      label_M_.values()[row] = row % 5 == 3 ? -1 : std::bit_cast<std::int32_t>(numbers.values()[row]);
  }

  std::vector<OpCall> calls(Arguments& arguments) override {
    const tensor::ConstTensorView logits = arguments.in_compute(logits_M1_), label = arguments.in(label_M_);
    const kernels::SquaredLossForward forward = {
        .logits_M1 = logits, .label_M = label, .loss_M = arguments.out(loss_M_)};
    const kernels::SquaredLossBackward backward = {.logits_M1 = logits,
                                                   .label_M = label,
                                                   .scale_1 = arguments.in(scale_1_),
                                                   .dlogits_M1 = arguments.out_compute(dlogits_M1_)};
    return {
        {"squared_loss_forward", [=](const auto& stream) { kernels::squared_loss_forward(stream, forward); },
         0, bytes_of({logits, label, forward.loss_M})},
        {"squared_loss_backward",
         [=](const auto& stream) { kernels::squared_loss_backward(stream, backward); }, 0,
         bytes_of({logits, label, backward.dlogits_M1})}};
  }

  std::vector<OpResult> results() const override {
    std::vector<double> loss, dlogits;
    const std::vector<double> logits = logits_M1_.doubles();
    for (std::size_t row = 0; row < logits.size(); ++row) {
      const std::int32_t label = label_M_.values()[row];
      loss.push_back(reference::squared_loss({logits[row]}, {label}));
      dlogits.push_back(
          label == -1 ? 0 : 2 * kSquaredScale * (logits[row] - double{std::bit_cast<float>(label)}));
    }
    return {{"loss", loss_M_.doubles(), loss, kFloat32Relative},
            {"dlogits", dlogits_M1_.doubles(), dlogits, compute_gradient_tolerance(device_)}};
  }

  std::vector<OpGradient> gradients() const override {
    return {{"dlogits",
             dlogits_M1_.doubles(),
             {},
             logits_M1_.doubles(),
             [this](const std::vector<double>& at) {
               return kSquaredScale * reference::squared_loss(at, label_M_.values());
             },
             compute_gradient_tolerance(device_)}};
  }

 private:
  tensor::Device device_;
  TestTensor<float> logits_M1_;
  TestTensor<std::int32_t> label_M_;
  TestTensor<double> scale_1_{{1}, kSquaredScale};
  TestTensor<float> loss_M_, dlogits_M1_;
};

OpShape squared_shape(std::int64_t rows, bool has_differences = false) {
  return op_shape<SquaredLossCase>(fmt::format("M={}", rows), rows, has_differences);
}

}  // namespace

OpDescriptor squared_loss_op() {
  return {.name = "squared_loss",
          .functions = {"squared_loss_forward", "squared_loss_backward"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            // The last has more rows than a block of the GPU takes.
            return {squared_shape(1, true), squared_shape(9, true), squared_shape(0), squared_shape(300)};
          },
          .typical = squared_shape(32)};
}

}  // namespace plenum::ops
