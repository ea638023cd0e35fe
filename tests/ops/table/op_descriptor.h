#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "plenum/tensor/device.h"

#include "tests/ops/op_arguments.h"

namespace plenum::ops {

// What an op is told by once, for all that is done with every op: comparison with its oracle, with
// differences and with itself, benchmark, table of support. Free of GoogleTest, so that a benchmark can use
// it.

/// A function of an op with its arguments where they lie, and the least work that it is.
struct OpCall {
  std::string function;  ///< its name in plenum::kernels
  std::function<void(const tensor::Stream&)> run;
  double flops = 0;  ///< multiplications and additions of the products
  double bytes = 0;  ///< that are read and written if each argument is moved once
};

/// What a call wrote, beside what the oracle makes of the same arguments.
struct OpResult {
  std::string name;
  std::vector<double> actual;
  std::vector<double> expected;
  double tolerance = 0;  ///< relative to the largest expected element
};

/// A gradient that a call computed, and the function that it is the gradient of.
struct OpGradient {
  std::string name;
  std::vector<double> actual;
  std::vector<double> before;  ///< what it was added to; empty: it was overwritten
  std::vector<double> point;   ///< the argument that it belongs to
  std::function<double(const std::vector<double>&)> loss;  ///< by the oracle, of that argument
  double tolerance = 0;
};

/// An op with arguments of one shape, and places for what it writes.
class OpCase {
 public:
  virtual ~OpCase() = default;

  /// Of the device; on the CPU of each thread.
  virtual std::size_t scratch_bytes() const { return 0; }
  /// The calls to make one after the other, forward first. `arguments` brings the arguments there and back.
  virtual std::vector<OpCall> calls(Arguments& arguments) = 0;
  /// After each call, when what it wrote is back: for what the next one overwrites.
  virtual void note(const std::string& function) { static_cast<void>(function); }
  /// After all calls.
  virtual std::vector<OpResult> results() const = 0;
  virtual std::vector<OpGradient> gradients() const { return {}; }
};

struct OpShape {
  std::string name;
  std::function<std::unique_ptr<OpCase>(tensor::Device)> make;
  bool has_differences = false;  ///< whether it is small enough for them
};

struct OpDescriptor {
  std::string name;
  std::vector<std::string> functions;
  std::vector<tensor::Device> devices = {tensor::Device::Cpu, tensor::Device::Cuda};
  std::function<std::vector<OpShape>(tensor::Device)> shapes;  ///< one row, none, and odd ones among them
  OpShape typical;  ///< of a layer of BERT-base with 4,096 tokens: what the benchmark times
};

/// A shape that `Case(device, options)` is made of.
template <typename Case, typename Options>
OpShape op_shape(std::string name, const Options& options, bool has_differences = false) {
  return {.name = std::move(name),
          .make = [options](tensor::Device device) { return std::make_unique<Case>(device, options); },
          .has_differences = has_differences};
}

/// What tensors take; those that are read and written stand twice.
inline double bytes_of(std::initializer_list<tensor::ConstTensorView> views) {
  double bytes = 0;
  for (const tensor::ConstTensorView& view : views) {
    if (!view) continue;
    bytes += static_cast<double>(view.num_elements()) * static_cast<double>(tensor::size_of(view.dtype()));
  }
  return bytes;
}

/// How far a gradient in Float32, or of the device's compute_dtype, may be from differences.
inline constexpr double kFloat32Gradient = kGradientRelative;
inline double compute_gradient_tolerance(tensor::Device device) {
  return std::max(kGradientRelative, compute_tolerance(device));
}

}  // namespace plenum::ops
