#include "plenum/kernels/activation.h"

#include <fmt/format.h>

#include "tests/ops/table/op_table.h"
#include "tests/reference/activation.h"

namespace plenum::ops {
namespace {

/// What differs between the two: backward of GELU reads what forward read, that of tanh what it wrote.
struct Function {
  std::string name;
  void (*forward)(const tensor::Stream& stream, tensor::ConstTensorView x, tensor::TensorView y);
  void (*backward)(const tensor::Stream& stream, tensor::ConstTensorView x, tensor::ConstTensorView y,
                   tensor::ConstTensorView dy, tensor::TensorView dx);
  double (*value)(double);
  double (*derivative)(double);
};

const Function kGelu = {
    .name = "gelu",
    .forward = [](const tensor::Stream& stream, tensor::ConstTensorView x,
                  tensor::TensorView y) { kernels::gelu_forward(stream, {.x = x, .y = y}); },
    .backward = [](const tensor::Stream& stream, tensor::ConstTensorView x, tensor::ConstTensorView,
                   tensor::ConstTensorView dy,
                   tensor::TensorView dx) { kernels::gelu_backward(stream, {.x = x, .dy = dy, .dx = dx}); },
    .value = reference::gelu,
    .derivative = reference::gelu_derivative};

const Function kTanh = {
    .name = "tanh",
    .forward = [](const tensor::Stream& stream, tensor::ConstTensorView x,
                  tensor::TensorView y) { kernels::tanh_forward(stream, {.x = x, .y = y}); },
    .backward = [](const tensor::Stream& stream, tensor::ConstTensorView, tensor::ConstTensorView y,
                   tensor::ConstTensorView dy,
                   tensor::TensorView dx) { kernels::tanh_backward(stream, {.y = y, .dy = dy, .dx = dx}); },
    .value = [](double x) { return std::tanh(x); },
    .derivative = [](double x) { return 1 - std::tanh(x) * std::tanh(x); }};

struct ActivationOptions {
  const Function* function;
  std::int64_t T, D;
};

class ActivationCase final : public OpCase {
 public:
  ActivationCase(tensor::Device device, const ActivationOptions& o)
      : device_(device),
        function_(*o.function),
        x_(rounded(random_tensor({o.T, o.D}, 1, 3), device)),
        dy_(rounded(random_tensor({o.T, o.D}, 2), device)),
        y_({o.T, o.D}, NAN),
        dx_({o.T, o.D}, NAN) {}

  std::vector<OpCall> calls(Arguments& arguments) override {
    const tensor::ConstTensorView x = arguments.in_compute(x_), dy = arguments.in_compute(dy_);
    const tensor::TensorView y = arguments.out_compute(y_), dx = arguments.out_compute(dx_);
    const Function& function = function_;
    return {{function.name + "_forward",
             [=, &function](const tensor::Stream& stream) { function.forward(stream, x, y); }, 0,
             bytes_of({x, y})},
            {function.name + "_backward",
             [=, &function](const tensor::Stream& stream) { function.backward(stream, x, y, dy, dx); }, 0,
             bytes_of({x, dy, dx})}};
  }

  std::vector<OpResult> results() const override {
    std::vector<double> y = x_.doubles(), dx = dy_.doubles();
    for (std::size_t i = 0; i < y.size(); ++i) {
      dx[i] *= function_.derivative(y[i]);
      y[i] = function_.value(y[i]);
    }
    return {{"y", y_.doubles(), y, compute_tolerance(device_)},
            {"dx", dx_.doubles(), dx, compute_tolerance(device_)}};
  }

  std::vector<OpGradient> gradients() const override {
    const std::vector<double> dy = dy_.doubles();
    return {{"dx",
             dx_.doubles(),
             {},
             x_.doubles(),
             [dy, this](std::vector<double> at) {
               for (double& value : at) value = function_.value(value);
               return dot(at, dy);
             },
             compute_gradient_tolerance(device_)}};
  }

 private:
  tensor::Device device_;
  const Function& function_;
  TestTensor<float> x_, dy_, y_, dx_;
};

OpShape shape(const ActivationOptions& o, bool has_differences = false) {
  return op_shape<ActivationCase>(fmt::format("T={} D={}", o.T, o.D), o, has_differences);
}

OpDescriptor descriptor(const Function& function) {
  return {.name = function.name,
          .functions = {function.name + "_forward", function.name + "_backward"},
          .shapes = [&function](tensor::Device) -> std::vector<OpShape> {
            return {shape({&function, 1, 1}, true), shape({&function, 5, 7}, true), shape({&function, 0, 4}),
                    shape({&function, 7, 9001})};
          },
          .typical = shape({&function, 4096, 3072})};
}

}  // namespace

OpDescriptor activation_gelu_op() {
  return descriptor(kGelu);
}

OpDescriptor activation_tanh_op() {
  return descriptor(kTanh);
}

}  // namespace plenum::ops
