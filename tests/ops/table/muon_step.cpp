#include "plenum/kernels/muon_step.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plenum/kernels/linear.h"
#include "plenum/kernels/newton_schulz.h"

#include "tests/ops/table/op_table.h"
#include "tests/reference/newton_schulz.h"

namespace plenum::ops {
namespace {

using kernels::FlatMatrices;
using kernels::StepScalar;

/// The terms of the polynomial are up to seven times as large as their sum, and five iterations follow each
/// other: of matrices whose singular values lie within a few times of each other, as here, ten roundings are
/// left in Float32. In bf16 a model of the same roundings was off by up to 0.09 of the largest element.
double iterated_tolerance(tensor::Device device) {
  return device == tensor::Device::Cpu ? 10 * kFloat32Relative : 20 * kBFloat16Relative;
}

/// Random numbers plus a multiple of the identity, which keeps singular values apart from zero.
void make_regular(std::span<float> values, std::int64_t rows, std::int64_t columns, float diagonal) {
  for (std::int64_t i = 0; i < std::min(rows, columns); ++i)
    values[static_cast<std::size_t>(i * columns + i)] += diagonal;
}

reference::Matrix matrix_at(const std::vector<double>& values, std::int64_t begin, std::int64_t rows,
                            std::int64_t columns) {
  return {static_cast<std::size_t>(rows),
          static_cast<std::size_t>(columns),
          {values.begin() + begin, values.begin() + begin + rows * columns}};
}

double flops_of(std::int64_t rows, std::int64_t columns) {
  const auto K = static_cast<double>(std::min(rows, columns));
  const auto L = static_cast<double>(std::max(rows, columns));
  return kernels::kNewtonSchulzIterations * 2 * (2 * K * K * L + K * K * K);
}

struct IterationOptions {
  std::int64_t num_matrices, rows, columns, gap;
};

class IterationCase final : public OpCase {
 public:
  IterationCase(tensor::Device device, const IterationOptions& o)
      : device_(device), options_(o), x_(begun(device, o)), y_(x_.shape(), NAN) {}

  std::size_t scratch_bytes() const override { return kernels::linear_scratch_bytes(device_); }
  std::vector<OpCall> calls(Arguments& arguments) override {
    const IterationOptions& o = options_;
    const kernels::NewtonSchulz args = {.num_matrices = o.num_matrices,
                                        .rows = o.rows,
                                        .columns = o.columns,
                                        .stride = stride(o),
                                        .x = arguments.out_compute(x_),
                                        .y = arguments.out_compute(y_),
                                        .squares_2BKK = arguments.out_compute(squares_2BKK_)};
    return {{"newton_schulz", [=](const auto& stream) { kernels::newton_schulz(stream, args); },
             static_cast<double>(o.num_matrices) * flops_of(o.rows, o.columns),
             bytes_of({args.x, args.y, args.squares_2BKK})}};
  }
  std::vector<OpResult> results() const override {
    const IterationOptions& o = options_;
    const std::vector<double> x = begun(device_, o).doubles();
    std::vector<OpResult> results;
    for (std::int64_t i = 0; i < o.num_matrices; ++i) {
      results.push_back({fmt::format("y of matrix {}", i),
                         matrix_at(y_.doubles(), i * stride(o), o.rows, o.columns).values,
                         reference::newton_schulz(matrix_at(x, i * stride(o), o.rows, o.columns)).values,
                         iterated_tolerance(device_)});
    }
    return results;
  }

 private:
  static std::int64_t stride(const IterationOptions& o) { return o.rows * o.columns + o.gap; }
  static TestTensor<float> begun(tensor::Device device, const IterationOptions& o) {
    const std::int64_t extent = std::max<std::int64_t>(0, o.num_matrices * stride(o) - o.gap);
    const double size = static_cast<double>(std::max(o.rows, o.columns));
    TestTensor<float> x = random_tensor({extent}, 1, 0.2 / std::max(1.0, size));
    for (std::int64_t i = 0; i < o.num_matrices; ++i) {
      make_regular(std::span(x.values()).subspan(static_cast<std::size_t>(i * stride(o))), o.rows, o.columns,
                   static_cast<float>(0.5 / std::sqrt(std::max(1.0, size))));
    }
    return rounded(std::move(x), device);
  }

  tensor::Device device_;
  IterationOptions options_;
  TestTensor<float> x_, y_;
  TestTensor<float> squares_2BKK_{{2, options_.num_matrices, std::min(options_.rows, options_.columns),
                                   std::min(options_.rows, options_.columns)},
                                  NAN};
};

OpShape shape(const IterationOptions& o) {
  return op_shape<IterationCase>(fmt::format("{} of {}x{}", o.num_matrices, o.rows, o.columns), o);
}

constexpr reference::OptimizerSettings kSettings = {.learning_rate = 0.02,
                                                    .beta1 = 0.9,
                                                    .beta2 = 0,
                                                    .epsilon = 0,
                                                    .decay = 0.1,
                                                    .correction1 = 1,
                                                    .correction2 = 1,
                                                    .gradient_scale = 0.5};

/// How a step is made: at once, or as replicas that divide it do.
enum class InHalves : bool { No, Yes };

struct StepOptions {
  std::int64_t N;
  std::vector<FlatMatrices> groups;
  bool is_skipped = false;
  InHalves in_halves = InHalves::No;
};

class MuonCase final : public OpCase {
 public:
  MuonCase(tensor::Device device, const StepOptions& o)
      : device_(device),
        options_(o),
        chunks_C8_(chunks(o.groups)),
        gradient_(begun_gradient(o)),
        weight_(random_tensor({o.N}, 2)),
        moment_(begun_moment(o)),
        iterate_({o.N}, 0.25F),
        compute_weight_({o.N}, 5.0F),
        room_({workspace::newton_schulz_room(device, o.groups)}, NAN) {
    set(StepScalar::LearningRate, kSettings.learning_rate);
    set(StepScalar::GradientScale, kSettings.gradient_scale);
    set(StepScalar::IsSkipped, o.is_skipped ? 1 : 0);
  }

  std::size_t scratch_bytes() const override {
    return std::max(kernels::linear_scratch_bytes(device_),
                    workspace::optimizer_scratch_bytes(device_, options_.N, 64));
  }
  std::vector<OpCall> calls(Arguments& arguments) override {
    if (options_.in_halves == InHalves::Yes) return calls_of_halves(arguments);
    const bool is_gpu = device_ == tensor::Device::Cuda;
    const kernels::MuonStep args = {
        .groups = options_.groups,
        .chunks_C8 = arguments.in(chunks_C8_),
        .gradient_N = arguments.in(gradient_),
        .weight_N = arguments.out(weight_),
        .moment_N = arguments.out(moment_),
        .iterate_N = arguments.out(iterate_),
        .compute_weight_N = is_gpu ? arguments.out_compute(compute_weight_) : tensor::TensorView(),
        .room = arguments.out_compute(room_),
        .scalars_C = arguments.in(scalars_C_),
        .momentum = kSettings.beta1,
        .decay = kSettings.decay};
    return {{"muon_step", [=](const auto& stream) { kernels::muon_step(stream, args); }, num_flops(),
             bytes_of({args.gradient_N, args.weight_N, args.weight_N, args.moment_N, args.moment_N,
                       args.compute_weight_N})}};
  }
  std::vector<OpResult> results() const override {
    std::vector<double> weight = random_tensor({options_.N}, 2).doubles();
    std::vector<double> moment = begun_moment(options_).doubles();
    if (!options_.is_skipped) apply_reference(weight, moment);
    // Of what another replica makes only the moment is there.
    if (options_.in_halves == InHalves::Yes) forget_others(weight);
    return {{"weight", weight_.doubles(), weight, options_.is_skipped ? 0 : weight_tolerance()},
            {"moment", moment_.doubles(), moment, options_.is_skipped ? 0 : 1e-6}};
  }

 private:
  double num_flops() const {
    double flops = 0;
    for (const FlatMatrices& group : own())
      flops += static_cast<double>(group.count) * flops_of(group.rows, group.columns);
    return flops;
  }
  /// All groups but, in halves, the last of several.
  std::span<const FlatMatrices> own() const {
    const bool has_others = options_.in_halves == InHalves::Yes && options_.groups.size() > 1;
    return std::span(options_.groups).first(options_.groups.size() - (has_others ? 1 : 0));
  }
  std::span<const FlatMatrices> others() const { return std::span(options_.groups).subspan(own().size()); }
  void forget_others(std::vector<double>& weight) const {
    const std::vector<double> begun = random_tensor({options_.N}, 2).doubles();
    for (const FlatMatrices& group : others()) {
      for (std::int64_t i = group.begin; i < group.begin_of(group.count - 1) + group.num_elements(); ++i)
        weight[static_cast<std::size_t>(i)] = begun[static_cast<std::size_t>(i)];
    }
  }
  std::vector<OpCall> calls_of_halves(Arguments& arguments) {
    const kernels::MuonDirections first = {.groups = own(),
                                           .others = others(),
                                           .gradient_N = arguments.out(gradient_),
                                           .moment_N = arguments.out(moment_),
                                           .iterate_N = arguments.out(iterate_),
                                           .room = arguments.out(room_),
                                           .scalars_C = arguments.in(scalars_C_),
                                           .momentum = kSettings.beta1};
    const kernels::MuonWeights second = {.groups = own(),
                                         .direction_N = first.gradient_N,
                                         .weight_N = arguments.out(weight_),
                                         .scalars_C = first.scalars_C,
                                         .decay = kSettings.decay};
    return {{"muon_directions", [=](const auto& stream) { kernels::muon_directions(stream, first); },
             num_flops(), bytes_of({first.gradient_N, first.gradient_N, first.moment_N, first.moment_N})},
            {"muon_weights", [=](const auto& stream) { kernels::muon_weights(stream, second); }, 0,
             bytes_of({second.direction_N, second.weight_N, second.weight_N})}};
  }
  void apply_reference(std::vector<double>& weight, std::vector<double>& moment) const {
    for (const FlatMatrices& group : options_.groups) {
      for (std::int64_t i = 0; i < group.count; ++i) {
        const auto part = [&](const std::vector<double>& all) {
          return matrix_at(all, group.begin_of(i), group.rows, group.columns).values;
        };
        reference::OptimizedTensor tensor = {
            part(weight), part(begun_gradient(options_).doubles()), part(moment), {}};
        reference::OptimizerSettings settings = kSettings;
        if (!group.is_decayed) settings.decay = 0;
        reference::muon_step(tensor, static_cast<std::size_t>(group.rows),
                             static_cast<std::size_t>(group.columns), settings);
        std::ranges::copy(tensor.weight, weight.begin() + group.begin_of(i));
        std::ranges::copy(tensor.first_moment, moment.begin() + group.begin_of(i));
      }
    }
  }
  /// Of what a step adds to weights of magnitude 1, which is small: what iterations leave of that.
  double weight_tolerance() const {
    constexpr double kUpdate = 0.02 * 0.2 * 8;  // at most, of sizes up to 64
    return 1e-6 + kUpdate * iterated_tolerance(device_);
  }
  static TestTensor<float> begun_gradient(const StepOptions& o) {
    return regular(random_tensor({o.N}, 1, 0.2), o, 4);
  }
  static TestTensor<float> begun_moment(const StepOptions& o) {
    return regular(random_tensor({o.N}, 3, 0.2), o, 4);
  }
  static TestTensor<float> regular(TestTensor<float> values, const StepOptions& o, float diagonal) {
    for (const FlatMatrices& group : o.groups) {
      for (std::int64_t i = 0; i < group.count; ++i) {
        make_regular(std::span(values.values()).subspan(static_cast<std::size_t>(group.begin_of(i))),
                     group.rows, group.columns, diagonal);
      }
    }
    return values;
  }
  static TestTensor<std::int64_t> chunks(const std::vector<FlatMatrices>& groups) {
    const std::vector<std::int64_t> chunks_C8 = kernels::matrix_chunks(groups);
    return {{static_cast<std::int64_t>(chunks_C8.size() / 8), 8}, chunks_C8};
  }
  void set(StepScalar which, double value) { scalars_C_.values()[kernels::index_of(which)] = value; }

  tensor::Device device_;
  StepOptions options_;
  TestTensor<std::int64_t> chunks_C8_;
  TestTensor<double> scalars_C_{{static_cast<std::int64_t>(kernels::kNumStepScalars)}};
  TestTensor<float> gradient_, weight_, moment_, iterate_, compute_weight_, room_;
};

OpShape shape(std::string name, const StepOptions& o) {
  return op_shape<MuonCase>(std::move(name), o);
}

}  // namespace

OpDescriptor newton_schulz_op() {
  return {.name = "newton_schulz",
          .functions = {"newton_schulz"},
          .shapes =
              [](tensor::Device) {
                // One number, a row, a column, tall, wide, square, none, several with gaps between them.
                return std::vector<OpShape>{
                    shape({1, 1, 1, 0}),    shape({1, 1, 8, 0}),   shape({1, 8, 1, 0}), shape({1, 24, 7, 0}),
                    shape({1, 7, 24, 0}),   shape({1, 33, 33, 0}), shape({0, 8, 8, 0}), shape({3, 16, 40, 8}),
                    shape({2, 40, 16, 24}), shape({4, 64, 64, 0})};
              },
          .typical = shape({1, 768, 768, 0})};
}

OpDescriptor muon_halves_op() {
  return {
      .name = "muon_halves",
      .functions = {"muon_directions", "muon_weights"},
      .devices = {tensor::Device::Cpu},
      .shapes = [](tensor::Device) -> std::vector<OpShape> {
        const std::vector<FlatMatrices> several = {{128, 256, 3, 16, 16, true},
                                                   {1024, 0, 1, 64, 80, true},
                                                   {7168, 512, 2, 20, 12, false},
                                                   {8192, 640, 2, 8, 40, true}};
        return {shape("one of 1x4", {8, {{4, 0, 1, 1, 4, true}}, false, InHalves::Yes}),
                shape("four groups", {10'000, several, false, InHalves::Yes}),
                shape("four groups, skipped", {10'000, several, true, InHalves::Yes})};
      },
      .typical = shape("N=589,824", {2'359'296, {{0, 589'824, 4, 768, 768, true}}, false, InHalves::Yes})};
}

OpDescriptor muon_step_op() {
  return {.name = "muon_step",
          .functions = {"muon_step"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            // Square, tall and wide, with gaps, one that takes several chunks, and one that is not decayed.
            const std::vector<FlatMatrices> several = {{128, 256, 3, 16, 16, true},
                                                       {1024, 0, 1, 64, 80, true},
                                                       {7168, 512, 2, 20, 12, false},
                                                       {8192, 640, 2, 8, 40, true}};
            return {shape("no matrix", {40, {}}), shape("one of 1x4", {8, {{4, 0, 1, 1, 4, true}}}),
                    shape("four groups", {10'000, several}),
                    shape("four groups, skipped", {10'000, several, true})};
          },
          .typical = shape("N=7,077,888", {7'077'888,
                                           {{0, 589'824, 4, 768, 768, true},
                                            {2'359'296, 0, 1, 3072, 768, true},
                                            {4'718'592, 0, 1, 768, 3072, true}}})};
}

}  // namespace plenum::ops
