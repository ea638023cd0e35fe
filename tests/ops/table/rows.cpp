#include "plenum/kernels/rows.h"

#include <fmt/format.h>

#include "tests/ops/table/op_table.h"
#include "tests/reference/rows.h"

namespace plenum::ops {
namespace {

struct RowsOptions {
  std::int64_t T, D;
  std::vector<std::int32_t> index;
};

class RowsCase final : public OpCase {
 public:
  RowsCase(tensor::Device device, const RowsOptions& o)
      : device_(device),
        index_M_({num_indices(o)}, o.index),
        x_TD_(rounded(random_tensor({o.T, o.D}, 1), device)),
        dy_MD_(rounded(random_tensor({num_indices(o), o.D}, 2), device)),
        before_TD_(rounded(random_tensor({o.T, o.D}, 3), device)),
        y_MD_({num_indices(o), o.D}, NAN),
        dx_TD_(before_TD_) {}

  std::vector<OpCall> calls(Arguments& arguments) override {
    const tensor::ConstTensorView index = arguments.in(index_M_);
    const kernels::GatherRowsForward forward = {
        .x_TD = arguments.in_compute(x_TD_), .index_M = index, .y_MD = arguments.out_compute(y_MD_)};
    const kernels::GatherRowsBackward backward = {
        .dy_MD = arguments.in_compute(dy_MD_), .index_M = index, .dx_TD = arguments.out_compute(dx_TD_)};
    return {
        {"gather_rows_forward", [=](const auto& stream) { kernels::gather_rows_forward(stream, forward); }, 0,
         bytes_of({forward.y_MD, forward.y_MD})},
        {"gather_rows_backward", [=](const auto& stream) { kernels::gather_rows_backward(stream, backward); },
         0, bytes_of({backward.dy_MD, backward.dy_MD, backward.dy_MD})}};
  }

  std::vector<OpResult> results() const override {
    std::vector<double> dx = before_TD_.doubles();
    const std::vector<double> dy = dy_MD_.doubles();
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const std::int32_t row = index_M_.values()[i / width()];
      if (row >= 0) dx[static_cast<std::size_t>(row) * width() + i % width()] += dy[i];
    }
    return {{"y", y_MD_.doubles(), gathered(x_TD_.doubles()), 0},
            {"dx", dx_TD_.doubles(), dx, compute_tolerance(device_)}};
  }

  std::vector<OpGradient> gradients() const override {
    const std::vector<double> dy = dy_MD_.doubles();
    return {{"dx", dx_TD_.doubles(), before_TD_.doubles(), x_TD_.doubles(),
             [dy, this](const std::vector<double>& at) { return dot(gathered(at), dy); },
             compute_gradient_tolerance(device_)}};
  }

 private:
  static std::int64_t num_indices(const RowsOptions& o) { return static_cast<std::int64_t>(o.index.size()); }
  std::size_t width() const { return static_cast<std::size_t>(x_TD_.shape()[1]); }
  std::vector<double> gathered(const std::vector<double>& x) const {
    return reference::gather_rows(x, index_M_.values(), width());
  }

  tensor::Device device_;
  TestTensor<std::int32_t> index_M_;
  TestTensor<float> x_TD_, dy_MD_, before_TD_, y_MD_, dx_TD_;
};

OpShape shape(const RowsOptions& o, bool has_differences = false) {
  return op_shape<RowsCase>(fmt::format("T={} D={} M={}", o.T, o.D, o.index.size()), o, has_differences);
}

/// Every seventh row, as masked tokens are.
std::vector<std::int32_t> every_seventh(std::int64_t rows) {
  std::vector<std::int32_t> index;
  for (std::int64_t row = 3; row < rows; row += 7) index.push_back(static_cast<std::int32_t>(row));
  return index;
}

}  // namespace

OpDescriptor rows_op() {
  return {.name = "gather_rows",
          .functions = {"gather_rows_forward", "gather_rows_backward"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            return {shape({1, 1, {0}}, true),
                    shape({5, 7, {4, 0, 2}}, true),
                    shape({3, 16, {}}, true),
                    shape({40, 19, {1, 39, 20, 21, 0}}, true),
                    shape({9, 2, {3, 8, 1, 0, 7, 2}}, true),
                    shape({2, 3, {-1, 1, -1}}, true),
                    shape({6, 1032, {5, -1, 0, 3, -1, 1}}),
                    shape({500, 40, every_seventh(500)})};
          },
          .typical = shape({4096, 768, every_seventh(4096)})};
}

}  // namespace plenum::ops
