#include "plenum/kernels/soap_step.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plenum/kernels/linear.h"
#include "plenum/kernels/orthonormalise.h"

#include "tests/ops/table/op_table.h"
#include "tests/reference/soap_step.h"

namespace plenum::ops {
namespace {

using kernels::FlatMatrices;
using kernels::StepScalar;

reference::Matrix matrix_at(const std::vector<double>& values, std::int64_t begin, std::int64_t rows,
                            std::int64_t columns) {
  return {static_cast<std::size_t>(rows),
          static_cast<std::size_t>(columns),
          {values.begin() + begin, values.begin() + begin + rows * columns}};
}

struct RowsOptions {
  std::int64_t B, N;
  bool has_lost_rows = false;  ///< the second and the last row of every matrix are zero
};

class RowsCase final : public OpCase {
 public:
  RowsCase(tensor::Device device, const RowsOptions& o) : device_(device), options_(o), x_BNN_(begun(o)) {}

  std::size_t scratch_bytes() const override { return kernels::linear_scratch_bytes(device_); }

  std::vector<OpCall> calls(Arguments& arguments) override {
    const kernels::Orthonormalise args = {.x_BNN = arguments.out(x_BNN_)};
    const auto N = static_cast<double>(options_.N);
    return {{"orthonormalise", [=](const auto& stream) { kernels::orthonormalise(stream, args); },
             static_cast<double>(options_.B) * 4 * N * N * N, bytes_of({args.x_BNN, args.x_BNN})}};
  }
  std::vector<OpResult> results() const override {
    const std::vector<double> before = begun(options_).doubles();
    std::vector<OpResult> results;
    for (std::int64_t i = 0; i < options_.B; ++i) {
      const std::int64_t begin = i * options_.N * options_.N;
      const reference::Matrix actual = matrix_at(x_BNN_.doubles(), begin, options_.N, options_.N);
      reference::Matrix identity = actual;
      for (std::size_t j = 0; j < identity.values.size(); ++j)
        identity.values[j] = j % (identity.rows + 1) == 0 ? 1 : 0;
      results.push_back({"x x^T", product(actual, transposed(actual)).values, identity.values, 1e-5});
      if (options_.has_lost_rows) continue;
      results.push_back({"x", actual.values,
                         reference::orthonormalised(matrix_at(before, begin, options_.N, options_.N)).values,
                         1e-3});
    }
    return results;
  }

 private:
  /// Rows that lean towards the first one, and get shorter.
  static TestTensor<float> begun(const RowsOptions& o) {
    TestTensor<float> x = random_tensor({o.B, o.N, o.N}, 1);
    for (std::int64_t row = 0; row < o.B * o.N; ++row) {
      float* const values = x.values().data() + row * o.N;
      const float* const first = x.values().data() + row / o.N * o.N * o.N;
      for (std::int64_t i = 0; i < o.N; ++i) {
        values[i] += 0.5F * first[i];
        values[i] *= std::pow(0.9F, static_cast<float>(row % o.N));
      }
      values[row % o.N] += 3;
      if (o.has_lost_rows && (row % o.N == 1 || row % o.N == o.N - 1)) std::fill_n(values, o.N, 0.0F);
    }
    return x;
  }

  tensor::Device device_;
  RowsOptions options_;
  TestTensor<float> x_BNN_;
};

OpShape shape(const RowsOptions& o) {
  const char* const lost = o.has_lost_rows ? " with lost rows" : "";
  return op_shape<RowsCase>(fmt::format("{} of {}x{}{}", o.B, o.N, o.N, lost), o);
}

constexpr reference::OptimizerSettings kSettings = {.learning_rate = 0.02,
                                                    .beta1 = 0.9,
                                                    .beta2 = 0,
                                                    .epsilon = 1e-4,
                                                    .decay = 0.1,
                                                    .correction1 = 1 - 0.9 * 0.9,
                                                    .correction2 = 1,
                                                    .gradient_scale = 0.5};

/// How a step is made: at once, or as schedules that move its parts do.
enum class InParts : bool { No, Yes };

struct StepOptions {
  std::int64_t N;
  std::vector<FlatMatrices> groups;
  std::int64_t limit;
  int num_iterations = 1;
  bool is_skipped = false;
  InParts in_parts = InParts::No;
};

class SoapCase final : public OpCase {
 public:
  SoapCase(tensor::Device device, const StepOptions& o)
      : device_(device),
        options_(o),
        gradient_(random_tensor({o.N}, 1)),
        weight_(random_tensor({o.N}, 2)),
        first_(random_tensor({o.N}, 3)),
        second_(begun_second(o.N)),
        compute_weight_({o.N}, 5.0F),
        state_(begun_state(o)),
        room_({workspace::soap_room_elements(device, o.groups, o.limit)}, NAN) {
    const auto set = [&](StepScalar which, double value) {
      scalars_C_.values()[kernels::index_of(which)] = value;
    };
    set(StepScalar::LearningRate, kSettings.learning_rate);
    set(StepScalar::GradientScale, kSettings.gradient_scale);
    set(StepScalar::NumUpdates, 3);
    set(StepScalar::IsSkipped, o.is_skipped ? 1 : 0);
  }

  std::size_t scratch_bytes() const override { return kernels::linear_scratch_bytes(device_); }
  std::vector<OpCall> calls(Arguments& arguments) override {
    if (options_.in_parts == InParts::Yes) return calls_of_parts(arguments);
    const bool is_gpu = device_ == tensor::Device::Cuda;
    const kernels::SoapStep args = {
        .groups = options_.groups,
        .limit = options_.limit,
        .gradient_N = arguments.in(gradient_),
        .weight_N = arguments.out(weight_),
        .first_moment_N = arguments.out(first_),
        .second_moment_N = arguments.out(second_),
        .compute_weight_N = is_gpu ? arguments.out_compute(compute_weight_) : tensor::TensorView(),
        .state = arguments.out(state_),
        .room = arguments.out(room_),
        .scalars_C = arguments.in(scalars_C_),
        .beta = kSettings.beta1,
        .epsilon = kSettings.epsilon,
        .decay = kSettings.decay,
        .num_iterations = options_.num_iterations};
    return {
        {"soap_step", [=](const auto& stream) { kernels::soap_step(stream, args); }, 0,
         bytes_of({args.gradient_N, args.weight_N, args.weight_N, args.first_moment_N, args.first_moment_N,
                   args.second_moment_N, args.second_moment_N, args.state, args.state})}};
  }
  std::vector<OpResult> results() const override {
    std::vector<double> weight = random_tensor({options_.N}, 2).doubles();
    std::vector<double> first = random_tensor({options_.N}, 3).doubles();
    std::vector<double> second = begun_second(options_.N).doubles();
    std::vector<double> state = begun_state(options_).doubles();
    if (!options_.is_skipped) apply_reference(weight, first, second, state);
    const double tolerance = options_.is_skipped ? 0 : 2e-4;
    return {{"weight", weight_.doubles(), weight, tolerance},
            {"first moment", first_.doubles(), first, options_.is_skipped ? 0 : 1e-6},
            {"second moment", second_.doubles(), second, tolerance},
            {"state", state_.doubles(), state, tolerance}};
  }

 private:
  std::vector<OpCall> calls_of_parts(Arguments& arguments) {
    const kernels::SoapFactors factors = {.groups = options_.groups,
                                          .limit = options_.limit,
                                          .gradient_N = arguments.out(gradient_),
                                          .state = arguments.out(state_),
                                          .room = arguments.out(room_),
                                          .scalars_C = arguments.in(scalars_C_),
                                          .beta = kSettings.beta1};
    const kernels::SoapDirections directions = {.groups = options_.groups,
                                                .limit = options_.limit,
                                                .gradient_N = arguments.out(gradient_),
                                                .first_moment_N = arguments.out(first_),
                                                .second_moment_N = arguments.out(second_),
                                                .state = factors.state,
                                                .room = factors.room,
                                                .scalars_C = factors.scalars_C,
                                                .beta = kSettings.beta1,
                                                .epsilon = kSettings.epsilon};
    const kernels::SoapWeights weights = {.groups = options_.groups,
                                          .direction_N = directions.gradient_N,
                                          .weight_N = arguments.out(weight_),
                                          .scalars_C = factors.scalars_C,
                                          .decay = kSettings.decay};
    return {{"soap_factors", [=](const auto& stream) { kernels::soap_factors(stream, factors); }, 0,
             bytes_of({factors.gradient_N, factors.state, factors.state})},
            {"soap_basis", [=, this](const auto& stream) { iterate_bases(stream, factors); }, 0,
             bytes_of({factors.state, factors.state})},
            {"soap_directions", [=](const auto& stream) { kernels::soap_directions(stream, directions); }, 0,
             bytes_of({directions.gradient_N, directions.gradient_N, directions.first_moment_N,
                       directions.second_moment_N})},
            {"soap_weights", [=](const auto& stream) { kernels::soap_weights(stream, weights); }, 0,
             bytes_of({weights.direction_N, weights.weight_N, weights.weight_N})}};
  }
  /// Of every matrix, one after the other.
  void iterate_bases(const tensor::Stream& stream, const kernels::SoapFactors& args) const {
    std::int64_t begin = 0;
    for (const FlatMatrices& group : options_.groups) {
      const workspace::SoapPlace place = workspace::soap_place(group, options_.limit, begin);
      begin = place.end();
      for (std::int64_t i = 0; i < group.count * options_.num_iterations; ++i) {
        iterate_basis(stream, args, place.rows, place.row_begin, i % group.count, group.count);
        iterate_basis(stream, args, place.columns, place.column_begin, i % group.count, group.count);
      }
    }
  }
  static void iterate_basis(const tensor::Stream& stream, const kernels::SoapFactors& args, std::int64_t N,
                            std::int64_t side_begin, std::int64_t index, std::int64_t count) {
    if (N == 0) return;
    const auto square = [&](std::int64_t at) {
      return tensor::TensorView(args.state.rows(side_begin + at * N * N, N * N).raw(), tensor::DType::Float32,
                                {N, N});
    };
    kernels::soap_basis(stream, {.factor_NN = square(index),
                                 .basis_NN = square(count + index),
                                 .room = args.room,
                                 .scalars_C = args.scalars_C});
  }
  void apply_reference(std::vector<double>& weight, std::vector<double>& first, std::vector<double>& second,
                       std::vector<double>& state) const {
    std::int64_t begin = 0;
    for (const FlatMatrices& group : options_.groups) {
      const workspace::SoapPlace place = workspace::soap_place(group, options_.limit, begin);
      begin = place.end();
      for (std::int64_t i = 0; i < group.count; ++i) {
        const std::int64_t at = group.begin_of(i);
        const auto flat = [&](const std::vector<double>& all) {
          return matrix_at(all, at, group.rows, group.columns);
        };
        const auto side = [&](std::int64_t side_begin, std::int64_t N, std::int64_t index) {
          return matrix_at(state, side_begin + index * N * N, N, N);
        };
        reference::SoapMatrix matrix = {flat(weight),
                                        flat(first),
                                        flat(second),
                                        side(place.row_begin, place.rows, i),
                                        side(place.row_begin, place.rows, group.count + i),
                                        side(place.column_begin, place.columns, i),
                                        side(place.column_begin, place.columns, group.count + i)};
        reference::Matrix gradient = flat(random_tensor({options_.N}, 1).doubles());
        for (double& value : gradient.values) value *= kSettings.gradient_scale;
        reference::OptimizerSettings settings = kSettings;
        if (!group.is_decayed) settings.decay = 0;
        reference::soap_step(matrix, gradient, settings, options_.num_iterations);
        const auto put = [](const reference::Matrix& from, std::vector<double>& to, std::int64_t place_of) {
          std::ranges::copy(from.values, to.begin() + place_of);
        };
        put(matrix.weight, weight, at);
        put(matrix.first, first, at);
        put(matrix.second, second, at);
        const auto put_side = [&](const reference::Matrix& from, std::int64_t side_begin, std::int64_t N,
                                  std::int64_t index) { put(from, state, side_begin + index * N * N); };
        put_side(matrix.row_factor, place.row_begin, place.rows, i);
        put_side(matrix.row_basis, place.row_begin, place.rows, group.count + i);
        put_side(matrix.column_factor, place.column_begin, place.columns, i);
        put_side(matrix.column_basis, place.column_begin, place.columns, group.count + i);
      }
    }
  }
  static TestTensor<float> begun_second(std::int64_t count) {
    TestTensor<float> moment = random_tensor({count}, 4);
    for (float& value : moment.values()) value = value * value;
    return moment;
  }
  /// Factors with eigenvalues apart, and bases a little off the identity, made orthonormal.
  static TestTensor<float> begun_state(const StepOptions& o) {
    TestTensor<float> state({workspace::soap_state_elements(o.groups, o.limit)});
    std::int64_t begin = 0;
    for (const FlatMatrices& group : o.groups) {
      const workspace::SoapPlace place = workspace::soap_place(group, o.limit, begin);
      begin = place.end();
      for (std::int64_t i = 0; i < group.count; ++i) {
        fill_side(state, place.row_begin, place.rows, i, group.count);
        fill_side(state, place.column_begin, place.columns, i, group.count);
      }
    }
    return state;
  }
  static void fill_side(TestTensor<float>& state, std::int64_t begin, std::int64_t N, std::int64_t index,
                        std::int64_t count) {
    reference::Matrix basis{static_cast<std::size_t>(N), static_cast<std::size_t>(N),
                            random_tensor({N, N}, 7, 0.1).doubles()};
    for (std::int64_t i = 0; i < N; ++i) {
      state.values()[static_cast<std::size_t>(begin + index * N * N + i * N + i)] =
          20 * std::pow(0.8F, static_cast<float>(i)) + 4;
      basis.values[static_cast<std::size_t>(i * N + i)] += 1;
    }
    std::ranges::copy(reference::orthonormalised(basis).values,
                      state.values().begin() + begin + (count + index) * N * N);
  }

  tensor::Device device_;
  StepOptions options_;
  TestTensor<double> scalars_C_{{static_cast<std::int64_t>(kernels::kNumStepScalars)}};
  TestTensor<float> gradient_, weight_, first_, second_, compute_weight_, state_, room_;
};

OpShape shape(std::string name, const StepOptions& o) {
  return op_shape<SoapCase>(std::move(name), o);
}

}  // namespace

OpDescriptor orthonormalise_op() {
  return {.name = "orthonormalise",
          .functions = {"orthonormalise"},
          .shapes =
              [](tensor::Device) {
                return std::vector<OpShape>{
                    shape({1, 1}),  shape({0, 5}),  shape({2, 3}),  shape({3, 17}),  shape({1, 40}),
                    shape({2, 63}), shape({3, 64}), shape({2, 65}), shape({1, 300}), shape({2, 70, true})};
              },
          .typical = shape({4, 768})};
}

OpDescriptor soap_parts_op() {
  return {
      .name = "soap_parts",
      .functions = {"soap_factors", "soap_basis", "soap_directions", "soap_weights"},
      .devices = {tensor::Device::Cpu},
      .shapes = [](tensor::Device) -> std::vector<OpShape> {
        const std::vector<FlatMatrices> several = {{16, 256, 2, 12, 12, true},
                                                   {600, 0, 1, 8, 24, true},
                                                   {800, 0, 1, 24, 8, false},
                                                   {1000, 0, 1, 20, 24, true}};
        return {shape("no matrix", {40, {}, 16, 1, false, InParts::Yes}),
                shape("four groups", {1500, several, 16, 1, false, InParts::Yes}),
                shape("four groups, two iterations", {1500, several, 24, 2, false, InParts::Yes}),
                shape("four groups, skipped", {1500, several, 16, 1, true, InParts::Yes})};
      },
      .typical = shape("N=589,824", {589'824, {{0, 0, 1, 768, 768, true}}, 1024, 1, false, InParts::Yes})};
}

OpDescriptor soap_step_op() {
  return {.name = "soap_step",
          .functions = {"soap_step"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            // Both sides, one side of a wide and of a tall matrix, neither, two in a group with a gap.
            const std::vector<FlatMatrices> several = {{16, 256, 2, 12, 12, true},
                                                       {600, 0, 1, 8, 24, true},
                                                       {800, 0, 1, 24, 8, false},
                                                       {1000, 0, 1, 20, 24, true}};
            return {shape("no matrix", {40, {}, 16}),
                    shape("one of 1x4", {8, {{4, 0, 1, 1, 4, true}}, 16}),
                    shape("four groups", {1500, several, 16}),
                    shape("four groups, both sides, bases kept", {1500, several, 24, 0}),
                    shape("four groups, two iterations", {1500, several, 16, 2}),
                    shape("four groups, skipped", {1500, several, 16, 1, true})};
          },
          .typical = shape("N=7,077,888", {7'077'888,
                                           {{0, 589'824, 4, 768, 768, true},
                                            {2'359'296, 0, 1, 3072, 768, true},
                                            {4'718'592, 0, 1, 768, 3072, true}},
                                           1024,
                                           0})};
}

}  // namespace plenum::ops
