#include <deque>

#include <fmt/format.h>

#include "plenum/kernels/convert.h"
#include "plenum/kernels/zero_all.h"

#include "tests/ops/table/op_table.h"

namespace plenum::ops {
namespace {

class RoundToComputeCase final : public OpCase {
 public:
  RoundToComputeCase(tensor::Device, std::int64_t count)
      : x_N_(random_tensor({count}, 1, 1e3)), y_N_({count}, NAN) {}

  std::vector<OpCall> calls(Arguments& arguments) override {
    const kernels::RoundToCompute args = {.x_N = arguments.in(x_N_), .y_N = arguments.out_compute(y_N_)};
    return {{"round_to_compute", [=](const auto& stream) { kernels::round_to_compute(stream, args); }, 0,
             bytes_of({args.x_N, args.y_N})}};
  }
  std::vector<OpResult> results() const override {
    return {{"y", y_N_.doubles(), rounded(x_N_, tensor::Device::Cuda).doubles(), 0}};
  }

 private:
  TestTensor<float> x_N_, y_N_;
};

class WidenFromComputeCase final : public OpCase {
 public:
  WidenFromComputeCase(tensor::Device device, std::int64_t count)
      : x_N_(rounded(random_tensor({count}, 1, 1e3), device)), y_N_({count}, NAN) {}

  std::vector<OpCall> calls(Arguments& arguments) override {
    const kernels::WidenFromCompute args = {.x_N = arguments.in_compute(x_N_), .y_N = arguments.out(y_N_)};
    return {{"widen_from_compute", [=](const auto& stream) { kernels::widen_from_compute(stream, args); }, 0,
             bytes_of({args.x_N, args.y_N})}};
  }
  std::vector<OpResult> results() const override { return {{"y", y_N_.doubles(), x_N_.doubles(), 0}}; }

 private:
  TestTensor<float> x_N_, y_N_;
};

class ZeroAllCase final : public OpCase {
 public:
  ZeroAllCase(tensor::Device, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) tensors_.emplace_back(tensor::Shape{i % 7 == 0 ? 0 : i, 3}, NAN);
  }

  std::vector<OpCall> calls(Arguments& arguments) override {
    std::vector<tensor::TensorView> views;
    double bytes = 0;
    for (TestTensor<float>& tensor : tensors_) {
      views.push_back(arguments.out(tensor));
      bytes += bytes_of({views.back()});
    }
    return {{"zero_all", [=](const auto& stream) { kernels::zero_all(stream, views); }, 0, bytes}};
  }
  std::vector<OpResult> results() const override {
    OpResult all{.name = "all", .actual = {}, .expected = {}, .tolerance = 0};
    for (const TestTensor<float>& tensor : tensors_) {
      all.actual.insert(all.actual.end(), tensor.values().begin(), tensor.values().end());
    }
    all.expected.resize(all.actual.size());
    return {all};
  }

 private:
  std::deque<TestTensor<float>> tensors_;
};

template <typename Case>
std::vector<OpShape> shapes_of(std::initializer_list<std::int64_t> counts) {
  std::vector<OpShape> shapes;
  for (const std::int64_t count : counts) {
    shapes.push_back(op_shape<Case>(fmt::format("N={}", count), count));
  }
  return shapes;
}

}  // namespace

OpDescriptor round_to_compute_op() {
  return {.name = "round_to_compute",
          .functions = {"round_to_compute"},
          .devices = {tensor::Device::Cuda},
          .shapes =
              [](tensor::Device) {
                return shapes_of<RoundToComputeCase>({0, 1, 7, 8, 9, 5003});
              },
          .typical = shapes_of<RoundToComputeCase>({768 * 3072}).front()};
}

OpDescriptor widen_from_compute_op() {
  return {.name = "widen_from_compute",
          .functions = {"widen_from_compute"},
          .devices = {tensor::Device::Cuda},
          .shapes =
              [](tensor::Device) {
                return shapes_of<WidenFromComputeCase>({0, 1, 7, 8, 9, 5003});
              },
          .typical = shapes_of<WidenFromComputeCase>({768 * 3072}).front()};
}

OpDescriptor zero_all_op() {
  return {.name = "zero_all",
          .functions = {"zero_all"},
          .shapes =
              [](tensor::Device) {
                return shapes_of<ZeroAllCase>({0, 1, 600});
              },
          .typical = shapes_of<ZeroAllCase>({800}).front()};
}

}  // namespace plenum::ops
