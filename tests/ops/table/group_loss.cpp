#include "plenum/kernels/group_loss.h"

#include <numeric>

#include <fmt/format.h>

#include "plenum/batch/group_label.h"

#include "tests/ops/table/op_table.h"
#include "tests/reference/group_loss.h"

namespace plenum::ops {
namespace {

constexpr double kGroupScale = 0.5;

struct GroupLossOptions {
  std::vector<std::int64_t> lengths;  ///< of the groups
  std::int64_t columns = 1;
  std::int64_t num_behind = 0;  ///< rows of no group behind them

  std::int64_t rows() const { return std::accumulate(lengths.begin(), lengths.end(), num_behind); }
};

class GroupLossCase final : public OpCase {
 public:
  GroupLossCase(tensor::Device device, const GroupLossOptions& o)
      : device_(device),
        logits_MC_(rounded(random_tensor({o.rows(), o.columns}, 1, 4), device)),
        label_M_({o.rows()}, -1),
        loss_M_({o.rows()}, NAN),
        dlogits_MC_({o.rows(), o.columns}, NAN) {
    // Answers anywhere in a group, of several columns in one row too.
    std::int64_t first = 0;
    for (const std::int64_t length : o.lengths) {
      for (std::int64_t row = first; row < first + length; ++row)
        label_at(row) = row == first ? batch::GroupLabel::kFirst : 0;
      for (int column = 0; column < o.columns; ++column)
        label_at(first + (7 * first + 5 * column) % length) |= batch::GroupLabel::answer(column);
      first += length;
    }
  }

  std::vector<OpCall> calls(Arguments& arguments) override {
    const tensor::ConstTensorView logits = arguments.in_compute(logits_MC_), label = arguments.in(label_M_);
    const kernels::GroupLossForward forward = {
        .logits_MC = logits, .label_M = label, .loss_M = arguments.out(loss_M_)};
    const kernels::GroupLossBackward backward = {.logits_MC = logits,
                                                 .label_M = label,
                                                 .scale_1 = arguments.in(scale_1_),
                                                 .dlogits_MC = arguments.out_compute(dlogits_MC_)};
    return {
        {"group_loss_forward", [=](const auto& stream) { kernels::group_loss_forward(stream, forward); }, 0,
         bytes_of({logits, label, forward.loss_M})},
        {"group_loss_backward", [=](const auto& stream) { kernels::group_loss_backward(stream, backward); },
         0, bytes_of({logits, label, backward.dlogits_MC})}};
  }

  std::vector<OpResult> results() const override {
    const std::vector<double> logits = logits_MC_.doubles();
    return {
        {"loss", loss_M_.doubles(), reference::group_losses(logits, label_M_.values()), kFloat32Relative},
        {"dlogits", dlogits_MC_.doubles(), expected_gradient(logits), compute_gradient_tolerance(device_)}};
  }

  std::vector<OpGradient> gradients() const override {
    return {{"dlogits",
             dlogits_MC_.doubles(),
             {},
             logits_MC_.doubles(),
             [this](const std::vector<double>& at) {
               const std::vector<double> losses = reference::group_losses(at, label_M_.values());
               return kGroupScale * std::accumulate(losses.begin(), losses.end(), 0.0);
             },
             compute_gradient_tolerance(device_)}};
  }

 private:
  std::int32_t& label_at(std::int64_t row) { return label_M_.values()[static_cast<std::size_t>(row)]; }

  /// Of every group by itself: exp(logit) / sum of the group's - 1 in the answer's row.
  std::vector<double> expected_gradient(const std::vector<double>& logits) const {
    using batch::GroupLabel;
    const std::vector<std::int32_t>& labels = label_M_.values();
    const auto columns = static_cast<std::size_t>(logits_MC_.shape()[1]);
    std::vector<double> gradient(logits.size());
    std::size_t first = 0;
    for (std::size_t row = 0; row < labels.size() && labels[row] != -1; ++row) {
      if (GroupLabel::is_first(labels[row])) first = row;
      std::size_t end = first + 1;
      while (end < labels.size() && labels[end] != -1 && !GroupLabel::is_first(labels[end])) ++end;
      for (std::size_t c = 0; c < columns; ++c) {
        double sum = 0;  // of exp(other - own)
        for (std::size_t i = first; i < end; ++i)
          sum += std::exp(logits[i * columns + c] - logits[row * columns + c]);
        const double answer = GroupLabel::is_answer(labels[row], static_cast<int>(c)) ? 1 : 0;
        gradient[row * columns + c] = kGroupScale / static_cast<double>(columns) * (1 / sum - answer);
      }
    }
    return gradient;
  }

  tensor::Device device_;
  TestTensor<float> logits_MC_;
  TestTensor<std::int32_t> label_M_;
  TestTensor<double> scale_1_{{1}, kGroupScale};
  TestTensor<float> loss_M_, dlogits_MC_;
};

OpShape group_shape(const GroupLossOptions& o, bool has_differences = false) {
  return op_shape<GroupLossCase>(fmt::format("groups={} M={} C={}", o.lengths.size(), o.rows(), o.columns), o,
                                 has_differences);
}

}  // namespace

OpDescriptor group_loss_op() {
  return {.name = "group_loss",
          .functions = {"group_loss_forward", "group_loss_backward"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            // Groups of more rows than a warp has lanes among them, and just as many.
            return {group_shape({.lengths = {1}}, true),
                    group_shape({.lengths = {4, 4, 4}, .num_behind = 2}, true),
                    group_shape({.lengths = {5, 1, 3}, .columns = 2, .num_behind = 4}, true),
                    group_shape({.lengths = {2, 1}, .columns = 8}, true),
                    group_shape({.lengths = {}, .columns = 2}),
                    group_shape({.lengths = {}, .columns = 2, .num_behind = 3}),
                    group_shape({.lengths = {33, 32, 31, 65, 1, 500}, .columns = 2, .num_behind = 40})};
          },
          .typical = group_shape({.lengths = std::vector<std::int64_t>(32, 128), .columns = 2})};
}

}  // namespace plenum::ops
