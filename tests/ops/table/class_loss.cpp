#include "plenum/kernels/class_loss.h"

#include <fmt/format.h>

#include "tests/ops/table/op_table.h"
#include "tests/reference/class_loss.h"

namespace plenum::ops {
namespace {

constexpr double kScale = 0.5;

struct ClassLossOptions {
  std::int64_t S, C;
};

class ClassLossCase final : public OpCase {
 public:
  ClassLossCase(tensor::Device device, const ClassLossOptions& o)
      : device_(device),
        logits_SC_(rounded(random_tensor({o.S, o.C}, 1, 4), device)),
        label_S_({o.S}),
        loss_S_({o.S}, NAN),
        dlogits_SC_({o.S, o.C}, NAN) {
    // All classes are among the labels, and no label.
    for (std::int64_t row = 0; row < o.S; ++row) {
      label_S_.values()[static_cast<std::size_t>(row)] =
          row % 5 == 3 ? -1 : static_cast<std::int32_t>(row % o.C);
    }
  }

  std::vector<OpCall> calls(Arguments& arguments) override {
    const tensor::ConstTensorView logits = arguments.in_compute(logits_SC_), label = arguments.in(label_S_);
    const kernels::ClassLossForward forward = {
        .logits_SC = logits, .label_S = label, .loss_S = arguments.out(loss_S_)};
    const kernels::ClassLossBackward backward = {.logits_SC = logits,
                                                 .label_S = label,
                                                 .scale_1 = arguments.in(scale_1_),
                                                 .dlogits_SC = arguments.out_compute(dlogits_SC_)};
    return {
        {"class_loss_forward", [=](const auto& stream) { kernels::class_loss_forward(stream, forward); }, 0,
         bytes_of({logits, label, forward.loss_S})},
        {"class_loss_backward", [=](const auto& stream) { kernels::class_loss_backward(stream, backward); },
         0, bytes_of({logits, label, backward.dlogits_SC})}};
  }

  std::vector<OpResult> results() const override {
    std::vector<double> loss, dlogits;
    const std::vector<double> logits = logits_SC_.doubles();
    for (std::size_t row = 0; row < label_S_.values().size(); ++row) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * num_classes());
      const std::vector<double> of_row(begin, begin + static_cast<std::ptrdiff_t>(num_classes()));
      loss.push_back(loss_of(of_row, row));
      const std::vector<double> gradient =
          numeric_gradient(of_row, [&](const auto& at) { return kScale * loss_of(at, row); });
      dlogits.insert(dlogits.end(), gradient.begin(), gradient.end());
    }
    return {{"loss", loss_S_.doubles(), loss, kFloat32Relative},
            {"dlogits", dlogits_SC_.doubles(), dlogits, compute_gradient_tolerance(device_)}};
  }

  std::vector<OpGradient> gradients() const override {
    return {{"dlogits",
             dlogits_SC_.doubles(),
             {},
             logits_SC_.doubles(),
             [this](const std::vector<double>& at) {
               double total = 0;
               for (std::size_t row = 0; row < label_S_.values().size(); ++row) {
                 const auto begin = at.begin() + static_cast<std::ptrdiff_t>(row * num_classes());
                 total += loss_of({begin, begin + static_cast<std::ptrdiff_t>(num_classes())}, row);
               }
               return kScale * total;
             },
             compute_gradient_tolerance(device_)}};
  }

 private:
  std::size_t num_classes() const { return static_cast<std::size_t>(logits_SC_.shape()[1]); }
  double loss_of(const std::vector<double>& logits, std::size_t row) const {
    const std::int32_t label = label_S_.values()[row];
    return label < 0 ? 0 : reference::class_loss(logits, {label});
  }

  tensor::Device device_;
  TestTensor<float> logits_SC_;
  TestTensor<std::int32_t> label_S_;
  TestTensor<double> scale_1_{{1}, kScale};
  TestTensor<float> loss_S_, dlogits_SC_;
};

OpShape shape(const ClassLossOptions& o, bool has_differences = false) {
  return op_shape<ClassLossCase>(fmt::format("S={} C={}", o.S, o.C), o, has_differences);
}

}  // namespace

OpDescriptor class_loss_op() {
  return {.name = "class_loss",
          .functions = {"class_loss_forward", "class_loss_backward"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            // The last has more rows than a block of the GPU takes.
            return {shape({1, 1}), shape({1, 2}, true), shape({5, 3}, true), shape({0, 2}), shape({300, 2})};
          },
          .typical = shape({32, 2})};
}

}  // namespace plenum::ops
