#include "plenum/kernels/dropout_rows.h"

#include <fmt/format.h>

#include "plenum/base/philox.h"
#include "plenum/workspace/rows.h"

#include "tests/ops/table/op_table.h"
#include "tests/reference/layer_norm.h"

namespace plenum::ops {
namespace {

struct DropoutRowsOptions {
  std::int64_t T, D;
  std::uint32_t threshold;
};

class DropoutRowsCase final : public OpCase {
 public:
  DropoutRowsCase(tensor::Device device, const DropoutRowsOptions& o)
      : device_(device),
        dropout_{.threshold = o.threshold,
                 .key = base::RandomFunction(5, base::Purpose::Dropout, 1).key(),
                 .site = kernels::DropoutSite::HeadInput},
        sample_T_({o.T}),
        position_T_({o.T}),
        x_TD_(rounded(random_tensor({o.T, o.D}, 1), device)),
        y_TD_({o.T, o.D}, NAN) {
    for (std::size_t row = 0; row < sample_T_.values().size(); ++row) {
      sample_T_.values()[row] = 0xABC000000000 + static_cast<std::int64_t>(row / 3);
      position_T_.values()[row] = static_cast<std::int32_t>(row % 3 * 17);
    }
  }

  std::size_t scratch_bytes() const override {
    return workspace::dropout_rows_scratch_bytes(device_, x_TD_.shape()[1]);
  }

  std::vector<OpCall> calls(Arguments& arguments) override {
    const kernels::DropoutRows args = {
        .x_TD = arguments.in_compute(x_TD_),
        .dropout = dropout_,
        .rows = {.sample_T = arguments.in(sample_T_), .position_T = arguments.in(position_T_)},
        .y_TD = arguments.out_compute(y_TD_)};
    return {{"dropout_rows", [=](const auto& stream) { kernels::dropout_rows(stream, args); }, 0,
             bytes_of({args.x_TD, args.y_TD})}};
  }

  std::vector<OpResult> results() const override {
    return {{"y", y_TD_.doubles(),
             reference::drop_rows(dropout_, x_TD_.doubles(), sample_T_.values(), position_T_.values()),
             compute_tolerance(device_)}};
  }

 private:
  tensor::Device device_;
  kernels::Dropout dropout_;
  TestTensor<std::int64_t> sample_T_;
  TestTensor<std::int32_t> position_T_;
  TestTensor<float> x_TD_, y_TD_;
};

OpShape dropout_shape(const DropoutRowsOptions& o) {
  return op_shape<DropoutRowsCase>(fmt::format("T={} D={} dropout {}/256", o.T, o.D, o.threshold), o);
}

}  // namespace

OpDescriptor dropout_rows_op() {
  return {.name = "dropout_rows",
          .functions = {"dropout_rows"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            return {dropout_shape({1, 1, 128}),   dropout_shape({7, 20, 51}),  dropout_shape({0, 16, 51}),
                    dropout_shape({5, 24, 0}),    dropout_shape({40, 47, 26}), dropout_shape({33, 768, 26}),
                    dropout_shape({9, 1032, 200})};
          },
          .typical = dropout_shape({4096, 768, 26})};
}

}  // namespace plenum::ops
