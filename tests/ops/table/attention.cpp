#include "tests/ops/attention_run.h"
#include "tests/ops/table/op_table.h"

namespace plenum::ops {
namespace {

using kernels::AttentionCase;
using kernels::AttentionResult;
using kernels::AttentionRun;

class AttentionOpCase final : public OpCase {
 public:
  AttentionOpCase(tensor::Device device, const AttentionCase& c)
      : device_(device), run_(c, device), result_(run_.begun()) {}

  std::size_t scratch_bytes() const override { return run_.scratch_bytes(); }
  std::vector<OpCall> calls(Arguments& arguments) override {
    const auto [forward, backward] = run_.bind(arguments, result_);
    double pairs = 0;  // of queries and keys, over all heads
    for (const double length : run_.shape().lengths) {
      pairs += length * length * static_cast<double>(run_.shape().heads);
    }
    const double flops = 2 * pairs * static_cast<double>(run_.shape().width);  // of one product
    return {{"attention_forward",
             [args = forward](const auto& stream) { kernels::attention_forward(stream, args); }, 2 * flops,
             bytes_of({forward.qkv_T3HK, forward.context_THK, forward.lse_HT})},
            {"attention_backward",
             [args = backward](const auto& stream) { kernels::attention_backward(stream, args); }, 5 * flops,
             bytes_of({backward.qkv_T3HK, backward.context_THK, backward.dcontext_THK, backward.lse_HT,
                       backward.dqkv_T3HK})}};
  }
  std::vector<OpResult> results() const override {
    const double compute = compute_tolerance(device_);
    const reference::Attention expected = run_.expected();
    // Of a single key there is no gradient but dV, so dQ and dK may be all zeros: compare with dV among them.
    return {{"context", result_.context.doubles(), expected.context, compute},
            {"lse", of_sequences(result_.lse.doubles()), of_sequences(expected.lse), kFloat32Relative},
            {"dqkv", result_.dqkv.doubles(), run_.expected_gradient(), compute}};
  }
  std::vector<OpGradient> gradients() const override {
    return {{"dqkv",
             result_.dqkv.doubles(),
             {},
             run_.qkv().doubles(),
             [this](const std::vector<double>& at) { return run_.loss(at); },
             compute_gradient_tolerance(device_)}};
  }

 private:
  /// In padding the logarithms mean nothing.
  std::vector<double> of_sequences(const std::vector<double>& lse_HT) const {
    const reference::AttentionShape& shape = run_.shape();
    std::vector<double> values;
    for (std::size_t head = 0; head < shape.heads; ++head) {
      for (std::size_t s = 0; s < shape.starts.size(); ++s) {
        const auto begin = lse_HT.begin() + static_cast<std::ptrdiff_t>(head * shape.rows) + shape.starts[s];
        values.insert(values.end(), begin, begin + shape.lengths[s]);
      }
    }
    return values;
  }

  tensor::Device device_;
  AttentionRun run_;
  AttentionResult result_;
};

OpShape shape(const AttentionCase& c, bool has_differences = false) {
  return op_shape<AttentionOpCase>(c.name(), c, has_differences);
}

/// Of head widths that the CPU alone takes.
std::vector<OpShape> narrow_shapes() {
  std::vector<OpShape> shapes;
  for (const std::uint32_t threshold : {0U, 26U, 128U}) {
    shapes.push_back(shape({kernels::shape_of(1, 1, {1}), threshold}, true));
    shapes.push_back(shape({kernels::shape_of(2, 4, {1, 5, 3}), threshold}, true));
    shapes.push_back(shape({kernels::shape_of(3, 5, {2, 1, 4}, 2), threshold}, true));
    shapes.push_back(shape({kernels::shape_of(1, 16, {17}), threshold}, true));
  }
  // Several blocks of queries, and of keys.
  shapes.push_back(shape({kernels::shape_of(2, 24, {131, 7, 300}, 1), 26}));
  shapes.push_back(shape({kernels::shape_of(1, 3, {800}), 0}));
  shapes.push_back(shape({kernels::shape_of(3, 16, {5, 140, 1, 64, 65, 300}, 3), 26}));
  return shapes;
}

}  // namespace

OpDescriptor attention_op() {
  return {.name = "attention",
          .functions = {"attention_forward", "attention_backward"},
          .shapes =
              [](tensor::Device device) {
                std::vector<OpShape> shapes;
                if (device == tensor::Device::Cpu) shapes = narrow_shapes();
                for (const AttentionCase& c : kernels::wide_cases()) shapes.push_back(shape(c));
                // Nothing, and nothing but padding.
                shapes.push_back(shape({kernels::shape_of(2, 64, {}), 26}));
                shapes.push_back(shape({kernels::shape_of(2, 64, {}, 3), 26}));
                return shapes;
              },
          .typical = shape({kernels::shape_of(12, 64, std::vector<std::int32_t>(16, 256)), 26})};
}

}  // namespace plenum::ops
