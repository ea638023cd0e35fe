#include "plenum/kernels/optimizer_step.h"

#include <cmath>

#include <fmt/format.h>

#include "tests/ops/table/op_table.h"
#include "tests/reference/optimizer_step.h"

namespace plenum::ops {
namespace {

using kernels::FlatRange;
using kernels::StepScalar;

struct Step {
  std::string name;
  std::vector<std::string> functions;
  void (*run)(const tensor::Stream& stream, const kernels::AdamStep& args);  ///< null: in two halves
  void (*reference)(reference::OptimizedTensor& tensor, const reference::OptimizerSettings& settings,
                    bool is_decayed);
};
const Step kAdam = {"adam_step",
                    {"adam_step"},
                    kernels::adam_step,
                    [](reference::OptimizedTensor& tensor, const reference::OptimizerSettings& settings,
                       bool) { reference::adam_step(tensor, settings); }};
const Step kLamb = {"lamb_step", {"lamb_step"}, kernels::lamb_step, reference::lamb_step};
const Step kLambHalves = {"lamb_halves", {"lamb_moments", "lamb_weights"}, nullptr, reference::lamb_step};

constexpr reference::OptimizerSettings kSettings = {.learning_rate = 0.02,
                                                    .beta1 = 0.8,
                                                    .beta2 = 0.95,
                                                    .epsilon = 1e-3,
                                                    .decay = 0.1,
                                                    .correction1 = 0.7,
                                                    .correction2 = 0.4,
                                                    .gradient_scale = 0.5};
/// Steps have few operations on each element, and no sums but the norms of LAMB.
constexpr double kStepRelative = 1e-6;

struct StepOptions {
  const Step* step;
  std::int64_t N;
  std::vector<FlatRange> ranges;
};

class StepCase final : public OpCase {
 public:
  StepCase(tensor::Device device, const StepOptions& o)
      : device_(device),
        options_(o),
        chunks_C4_(chunks(o.ranges)),
        gradient_(random_tensor({o.N}, 1)),
        weight_(random_tensor({o.N}, 2)),
        first_moment_(random_tensor({o.N}, 3)),
        second_moment_(begun_second_moment(o.N)),
        compute_weight_({o.N}, 5.0F) {
    set(StepScalar::LearningRate, kSettings.learning_rate);
    set(StepScalar::Correction1, kSettings.correction1);
    set(StepScalar::Correction2, kSettings.correction2);
    set(StepScalar::GradientScale, kSettings.gradient_scale);
  }

  std::size_t scratch_bytes() const override {
    return kernels::optimizer_scratch_bytes(device_, options_.N, std::ssize(options_.ranges));
  }
  std::vector<OpCall> calls(Arguments& arguments) override {
    const kernels::AdamStep args = {.ranges = options_.ranges,
                                    .work = {.chunks_C4 = arguments.in(chunks_C4_)},
                                    .gradient_N = arguments.in(gradient_),
                                    .weight_N = arguments.out(weight_),
                                    .first_moment_N = arguments.out(first_moment_),
                                    .second_moment_N = arguments.out(second_moment_),
                                    .compute_weight_N = device_ == tensor::Device::Cuda
                                                            ? arguments.out_compute(compute_weight_)
                                                            : tensor::TensorView(),
                                    .scalars_C = arguments.in(scalars_C_),
                                    .beta1 = kSettings.beta1,
                                    .beta2 = kSettings.beta2,
                                    .epsilon = kSettings.epsilon,
                                    .decay = kSettings.decay};
    const Step& step = *options_.step;
    if (step.run == nullptr) return halves({args, arguments.out(squares_R2_)});
    return {
        {step.functions.front(), [=, run = step.run](const auto& stream) { run(stream, args); }, 0,
         bytes_of({args.gradient_N, args.weight_N, args.weight_N, args.first_moment_N, args.first_moment_N,
                   args.second_moment_N, args.second_moment_N, args.compute_weight_N})}};
  }

  std::vector<OpResult> results() const override {
    std::vector<double> weight = random_tensor({options_.N}, 2).doubles();
    std::vector<double> first = random_tensor({options_.N}, 3).doubles();
    std::vector<double> second = begun_second_moment(options_.N).doubles();
    TestTensor<float> compute_weight({options_.N}, 5.0F);
    const TestTensor<float> rounded_weight = rounded(weight_, tensor::Device::Cuda);
    for (const FlatRange& range : options_.ranges) {
      const auto part = [&](const std::vector<double>& all) {
        return std::vector<double>(all.begin() + range.begin, all.begin() + range.end);
      };
      reference::OptimizedTensor tensor = {part(weight), part(gradient_.doubles()), part(first),
                                           part(second)};
      reference::OptimizerSettings settings = kSettings;
      settings.learning_rate *= range.rate_factor;
      if (!range.is_decayed) settings.decay = 0;
      options_.step->reference(tensor, settings, range.is_decayed);
      std::ranges::copy(tensor.weight, weight.begin() + range.begin);
      std::ranges::copy(tensor.first_moment, first.begin() + range.begin);
      std::ranges::copy(tensor.second_moment, second.begin() + range.begin);
      std::copy(rounded_weight.values().begin() + range.begin, rounded_weight.values().begin() + range.end,
                compute_weight.values().begin() + range.begin);
    }
    std::vector<OpResult> results = {{"weight", weight_.doubles(), weight, kStepRelative},
                                     {"first moment", first_moment_.doubles(), first, kStepRelative},
                                     {"second moment", second_moment_.doubles(), second, kStepRelative}};
    if (device_ == tensor::Device::Cuda) {
      results.push_back({"compute weight", compute_weight_.doubles(), compute_weight.doubles(), 0});
    }
    return results;
  }

 private:
  std::vector<OpCall> halves(const kernels::LambHalf& args) const {
    const kernels::AdamStep& step = args.step;
    const std::vector<std::string>& functions = options_.step->functions;
    return {{functions[0], [=](const auto& stream) { kernels::lamb_moments(stream, args); }, 0,
             bytes_of({step.gradient_N, step.weight_N, step.first_moment_N, step.first_moment_N,
                       step.second_moment_N, step.second_moment_N})},
            {functions[1], [=](const auto& stream) { kernels::lamb_weights(stream, args); }, 0,
             bytes_of({step.weight_N, step.weight_N, step.first_moment_N, step.second_moment_N,
                       step.compute_weight_N})}};
  }
  static TestTensor<float> begun_second_moment(std::int64_t count) {
    TestTensor<float> moment = random_tensor({count}, 4);
    for (float& value : moment.values()) value = value * value;
    return moment;
  }
  static TestTensor<std::int64_t> chunks(const std::vector<FlatRange>& ranges) {
    const std::vector<std::int64_t> chunks_C4 = kernels::optimizer_chunks(ranges);
    return {{static_cast<std::int64_t>(chunks_C4.size() / 4), 4}, chunks_C4};
  }
  void set(StepScalar which, double value) { scalars_C_.values()[kernels::index_of(which)] = value; }

  tensor::Device device_;
  StepOptions options_;
  TestTensor<std::int64_t> chunks_C4_;
  TestTensor<double> squares_R2_{{std::ssize(options_.ranges), 2}};
  TestTensor<double> scalars_C_{{static_cast<std::int64_t>(kernels::kNumStepScalars)}};
  TestTensor<float> gradient_, weight_, first_moment_, second_moment_, compute_weight_;
};

OpShape shape(const StepOptions& o) {
  return op_shape<StepCase>(fmt::format("N={} in {} ranges", o.N, o.ranges.size()), o);
}

OpDescriptor descriptor(const Step& step) {
  return {.name = step.name,
          .functions = step.functions,
          .shapes = [&step](tensor::Device) -> std::vector<OpShape> {
            // One element, none, odd borders, gaps, one that takes many blocks, the end of the buffers.
            const std::vector<FlatRange> odd = {{0, 1, true},
                                                {16, 16, true},
                                                {17, 50, false, 0.5F},
                                                {50, 1003, true},
                                                {1024, 70'001, true, 0.75F},
                                                {70'016, 90'000, false},
                                                {90'016, 100'000, true}};
            return {shape({&step, 1, {{0, 1, true}}}), shape({&step, 40, {}}),
                    shape({&step, 40, {{7, 7, true}, {9, 9, false}}}), shape({&step, 100'000, odd})};
          },
          .typical = shape({&step, 7'077'888, {{0, 7'077'888, true}}})};
}

}  // namespace

OpDescriptor adam_step_op() {
  return descriptor(kAdam);
}

OpDescriptor lamb_step_op() {
  return descriptor(kLamb);
}

OpDescriptor lamb_halves_op() {
  return descriptor(kLambHalves);
}

}  // namespace plenum::ops
