#include "tests/reference/kronecker.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "plenum/kernels/kronecker_factors.h"
#include "plenum/kernels/precondition.h"
#include "plenum/kernels/second_moment.h"
#include "plenum/kernels/spd_inverse.h"

#include "tests/ops/table/op_table.h"

namespace plenum::ops {
namespace {

using kernels::InverseState;
using kernels::RowRange;

std::size_t at(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

/// What of a square matrix stands on and below its diagonal.
std::vector<double> lower(const std::vector<double>& matrix, std::int64_t size) {
  std::vector<double> half;
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) half.push_back(matrix[at(i * size + j)]);
  }
  return half;
}

/// A symmetric positive definite matrix whose diagonal has the mean `level`; its condition is some hundred.
TestTensor<float> positive_matrix(std::int64_t size, std::uint64_t seed, double level = 1) {
  constexpr double kLeast = 0.5;
  const std::int64_t rows = size / 2 + 1;
  const TestTensor<float> x = random_tensor({rows, size}, seed);
  const std::vector<double> moment =
      reference::second_moment(x.doubles(), at(size), 0, at(size), {{0, at(rows)}});
  const double scale = level / (reference::mean_of_diagonal(moment, at(size)) + kLeast);
  TestTensor<float> matrix({size, size});
  for (std::size_t i = 0; i < moment.size(); ++i) {
    const double on_diagonal = i % at(size + 1) == 0 ? kLeast : 0;
    matrix.values()[i] = static_cast<float>(scale * (moment[i] + on_diagonal));
  }
  return matrix;
}

TestTensor<double> begun_state() {
  return TestTensor<double>({kernels::kNumInverseStates});
}
double& state_at(TestTensor<double>& state, InverseState which) {
  return state.values()[kernels::index_of(which)];
}

struct MomentOptions {
  std::int64_t T, W, first, D;
  std::vector<RowRange> rows;
};

class MomentCase final : public OpCase {
 public:
  MomentCase(tensor::Device device, const MomentOptions& o)
      : device_(device), options_(o), x_TW_(input()), moment_DD_(random_tensor({o.D, o.D}, 2)) {}

  std::size_t scratch_bytes() const override { return kernels::kronecker_scratch_bytes(device_, 0); }
  std::vector<OpCall> calls(Arguments& arguments) override {
    const kernels::AddSecondMoment args = {.x_TW = arguments.out_compute(x_TW_),
                                           .first_column = options_.first,
                                           .rows = options_.rows,
                                           .moment_DD = arguments.out(moment_DD_)};
    const auto [T, W, first, D, rows] = options_;
    return {{"add_second_moment", [=](const auto& stream) { kernels::add_second_moment(stream, args); },
             static_cast<double>(T * D * (D + 1)), bytes_of({args.x_TW, args.moment_DD, args.moment_DD})}};
  }
  std::vector<OpResult> results() const override {
    std::vector<std::pair<std::size_t, std::size_t>> rows;
    for (const RowRange& range : options_.rows) rows.emplace_back(range.begin, range.end);
    const std::vector<double> added =
        reference::second_moment(input().doubles(), at(options_.W), at(options_.first), at(options_.D), rows);
    const std::vector<double> expected = plus(added, random_tensor({options_.D, options_.D}, 2).doubles());
    return {{"moment", lower(moment_DD_.doubles(), options_.D), lower(expected, options_.D),
             options_.rows.empty() ? 0 : kFloat32Relative}};
  }

 private:
  /// Padding is not zero, and must not enter.
  TestTensor<float> input() const { return rounded(random_tensor({options_.T, options_.W}, 1), device_); }

  tensor::Device device_;
  MomentOptions options_;
  TestTensor<float> x_TW_, moment_DD_;
};

OpShape moment_shape(const MomentOptions& o) {
  return op_shape<MomentCase>(
      fmt::format("T={} W={} columns {} to {} in {} ranges", o.T, o.W, o.first, o.first + o.D, o.rows.size()),
      o);
}

struct InverseOptions {
  std::int64_t N;
  std::int64_t cut;  ///< the steps of a piece
};

class InverseCase final : public OpCase {
 public:
  InverseCase(tensor::Device device, const InverseOptions& o)
      : device_(device),
        options_(o),
        matrix_NN_(positive_matrix(o.N, 1)),
        panels_2NP_({2, o.N, kernels::kInversePanel}, NAN) {
    // Only the lower half is read.
    for (std::int64_t i = 0; i < o.N; ++i) {
      for (std::int64_t j = i + 1; j < o.N; ++j) matrix_NN_.values()[at(i * o.N + j)] = NAN;
    }
  }

  std::size_t scratch_bytes() const override { return kernels::kronecker_scratch_bytes(device_, 0); }
  std::vector<OpCall> calls(Arguments& arguments) override {
    kernels::InvertSpd args = {.matrix_NN = arguments.out(matrix_NN_),
                               .panels_2NP = arguments.out(panels_2NP_),
                               .state_C = arguments.out(state_C_)};
    const auto [N, cut] = options_;
    const auto run = [=](const auto& stream) mutable {
      const std::int64_t num_steps = kernels::num_inverse_steps(N);
      for (args.first_step = 0; args.first_step < num_steps; args.first_step = args.end_step) {
        args.end_step = std::min(num_steps, args.first_step + cut);
        kernels::invert_spd(stream, args);
      }
    };
    const auto size = static_cast<double>(N);
    return {{"invert_spd", run, size * size * size, bytes_of({args.matrix_NN, args.matrix_NN})}};
  }
  std::vector<OpResult> results() const override {
    return {{"inverse", matrix_NN_.doubles(),
             reference::inverse(positive_matrix(options_.N, 1).doubles(), at(options_.N)), kInverseRelative},
            {"failed", {state_C_.values()[kernels::index_of(InverseState::HasFailed)]}, {0}, 0}};
  }

 private:
  /// Rounding times a condition of some hundred.
  static constexpr double kInverseRelative = 2e-4;

  tensor::Device device_;
  InverseOptions options_;
  TestTensor<float> matrix_NN_, panels_2NP_;
  TestTensor<double> state_C_ = begun_state();
};

OpShape inverse_shape(const InverseOptions& o) {
  return op_shape<InverseCase>(fmt::format("N={} by {} steps", o.N, o.cut), o);
}

struct FactorOptions {
  std::int64_t D, E;
  bool has_average;
};

/// One refresh: what is folded and in use is damped, taken, given back by a skipped step, and taken again.
class FactorCase final : public OpCase {
 public:
  FactorCase(tensor::Device, const FactorOptions& o)
      : options_(o),
        sum_a_(positive_matrix(o.D, 1, 3)),
        sum_b_(positive_matrix(o.E, 2, 1e-3)),
        average_a_(positive_matrix(o.D, 3)),
        average_b_(positive_matrix(o.E, 4, 1e-2)),
        new_a_({o.D, o.D}, 0.5F),
        new_b_({o.E, o.E}, 0.5F),
        a_(random_tensor({o.D, o.D}, 5)),
        b_(random_tensor({o.E, o.E}, 6)) {
    state_at(state_C_, InverseState::AverageWeight) = kWeight;
    state_at(state_C_, InverseState::HasFailed) = 1;
  }

  std::vector<OpCall> calls(Arguments& arguments) override {
    const tensor::TensorView state = arguments.out(state_C_);
    const auto [D, E, has_average] = options_;
    const kernels::RunningFactors running =
        has_average ? kernels::RunningFactors{arguments.out(average_a_), arguments.out(average_b_), kKeep}
                    : kernels::RunningFactors{};
    const tensor::ConstTensorView sum_a = arguments.in(sum_a_), sum_b = arguments.in(sum_b_);
    const tensor::TensorView new_a = arguments.out(new_a_), new_b = arguments.out(new_b_);
    const kernels::DampFactors damp = {sum_a,    sum_b, kScaleA, kScaleB, running,
                                       kDamping, new_a, new_b,   state};
    const kernels::TakeInverse take = {new_a, new_b, arguments.out(a_), arguments.out(b_), {}, state};
    kernels::ReturnInverse back = {take};
    back.taken.skipped_1 = arguments.in(skipped_);
    const kernels::FoldFactors fold = {sum_a, sum_b, kScaleA, kScaleB, running, state};
    std::vector<OpCall> calls = {
        {"damp_factors", [=](const auto& stream) { kernels::damp_factors(stream, damp); }, 0,
         bytes_of({sum_a, sum_b, new_a, new_b})},
        {"take_inverse", [=](const auto& stream) { kernels::take_inverse(stream, take); }, 0,
         bytes_of({new_a, new_b, new_a, new_b, new_a, new_b, new_a, new_b})},
        {"return_inverse", [=](const auto& stream) { kernels::return_inverse(stream, back); }, 0, 0}};
    const auto take_again = [=](const auto& stream) {
      kernels::take_inverse(stream, take);
      if (has_average) kernels::fold_factors(stream, fold);
    };
    calls.push_back({"fold_factors", take_again, 0, bytes_of({sum_a, sum_b})});
    return calls;
  }

  void note(const std::string& function) override {
    if (function == "damp_factors") damped_ = {new_a_.doubles(), new_b_.doubles()};
    if (function == "take_inverse") taken_ = a_.doubles();
    if (function == "return_inverse") returned_ = {a_.doubles(), state_C_.values()[0]};
  }

  std::vector<OpResult> results() const override {
    const auto [D, E, has_average] = options_;
    std::vector<double> folded_a = folded(average_before(D, 3, 1), sum_a_.doubles(), kScaleA);
    std::vector<double> folded_b = folded(average_before(E, 4, 1e-2), sum_b_.doubles(), kScaleB);
    const double weight = kKeep * kWeight + (1 - kKeep);
    std::vector<double> a = has_average ? times(folded_a, 1 / weight) : times(sum_a_.doubles(), kScaleA);
    std::vector<double> b = has_average ? times(folded_b, 1 / weight) : times(sum_b_.doubles(), kScaleB);
    reference::damp(a, at(D), b, at(E), kDamping);
    std::vector<OpResult> results = {
        {"damped A", lower(damped_.first, D), lower(a, D), kStep},
        {"damped B", lower(damped_.second, E), lower(b, E), kStep},
        {"taken", lower(taken_, D), lower(damped_.first, D), 0},
        {"given back", returned_.first, random_tensor({D, D}, 5).doubles(), 0},
        {"not ready again", {returned_.second}, {0}, 0},
        {"taken again", lower(a_.doubles(), D), lower(damped_.first, D), 0},
        {"ready", {state_C_.values()[kernels::index_of(InverseState::IsReady)]}, {1}, 0},
        {"not failed", {state_C_.values()[kernels::index_of(InverseState::HasFailed)]}, {0}, 0}};
    if (has_average) {
      results.push_back({"average of A", lower(average_a_.doubles(), D), lower(folded_a, D), kStep});
      results.push_back({"average of B", lower(average_b_.doubles(), E), lower(folded_b, E), kStep});
      results.push_back(
          {"weight", {state_C_.values()[kernels::index_of(InverseState::AverageWeight)]}, {weight}, kStep});
    }
    return results;
  }

 private:
  static constexpr double kScaleA = 0.25, kScaleB = 8, kDamping = 0.01, kKeep = 0.75, kWeight = 0.4375;
  static constexpr double kStep = 1e-6;

  static std::vector<double> average_before(std::int64_t size, std::uint64_t seed, double level) {
    return positive_matrix(size, seed, level).doubles();
  }
  static std::vector<double> times(std::vector<double> values, double factor) {
    for (double& value : values) value *= factor;
    return values;
  }
  static std::vector<double> folded(std::vector<double> average, const std::vector<double>& sum,
                                    double scale) {
    for (std::size_t i = 0; i < sum.size(); ++i)
      average[i] = kKeep * average[i] + (1 - kKeep) * scale * sum[i];
    return average;
  }

  FactorOptions options_;
  TestTensor<float> sum_a_, sum_b_, average_a_, average_b_, new_a_, new_b_, a_, b_;
  TestTensor<double> state_C_ = begun_state();
  TestTensor<double> skipped_{{1}, 1.0};
  std::pair<std::vector<double>, std::vector<double>> damped_;
  std::vector<double> taken_;
  std::pair<std::vector<double>, double> returned_;
};

OpShape factor_shape(const FactorOptions& o) {
  return op_shape<FactorCase>(fmt::format("D={} E={}{}", o.D, o.E, o.has_average ? " averaged" : ""), o);
}

struct PreconditionOptions {
  std::int64_t E, D;
  bool is_ready = true;
  double scale = 1;  ///< of the gradient
};

class PreconditionCase final : public OpCase {
 public:
  PreconditionCase(tensor::Device device, const PreconditionOptions& o)
      : device_(device),
        options_(o),
        inverse_a_(positive_matrix(o.D, 1, 5)),
        inverse_b_(positive_matrix(o.E, 2, 0.1)),
        gradient_ED_(random_tensor({o.E, o.D}, 3, o.scale)),
        work_2ED_({2, o.E, o.D}, NAN) {
    state_at(state_C_, InverseState::IsReady) = o.is_ready ? 1 : 0;
  }

  std::size_t scratch_bytes() const override {
    return kernels::kronecker_scratch_bytes(device_, options_.E * options_.D);
  }
  std::vector<OpCall> calls(Arguments& arguments) override {
    const kernels::Precondition args = {.inverse_a_DD = arguments.in(inverse_a_),
                                        .inverse_b_EE = arguments.in(inverse_b_),
                                        .state_C = arguments.in(state_C_),
                                        .gradient_ED = arguments.out(gradient_ED_),
                                        .work_2ED = arguments.out(work_2ED_)};
    const auto E = static_cast<double>(options_.E);
    const auto D = static_cast<double>(options_.D);
    return {{"precondition", [=](const auto& stream) { kernels::precondition(stream, args); },
             2 * E * D * (E + D),
             bytes_of({args.inverse_a_DD, args.inverse_b_EE, args.gradient_ED, args.gradient_ED})}};
  }
  std::vector<OpResult> results() const override {
    const std::vector<double> before = random_tensor({options_.E, options_.D}, 3, options_.scale).doubles();
    if (!options_.is_ready) return {{"gradient", gradient_ED_.doubles(), before, 0}};
    return {{"gradient", gradient_ED_.doubles(),
             reference::preconditioned(inverse_a_.doubles(), at(options_.D), inverse_b_.doubles(),
                                       at(options_.E), before),
             kFloat32Relative}};
  }

 private:
  tensor::Device device_;
  PreconditionOptions options_;
  TestTensor<float> inverse_a_, inverse_b_, gradient_ED_, work_2ED_;
  TestTensor<double> state_C_ = begun_state();
};

OpShape precondition_shape(const PreconditionOptions& o) {
  return op_shape<PreconditionCase>(
      fmt::format("E={} D={}{} scale {}", o.E, o.D, o.is_ready ? "" : " not ready", o.scale), o);
}

}  // namespace

OpDescriptor second_moment_op() {
  return {.name = "second_moment",
          .functions = {"add_second_moment"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            // One row, none, parts of the columns, padding between, before and behind.
            return {moment_shape({1, 1, 0, 1, {{0, 1}}}),
                    moment_shape({4, 7, 0, 7, {}}),
                    moment_shape({5, 24, 8, 16, {{0, 5}}}),
                    moment_shape({37, 33, 11, 11, {{0, 10}, {10, 10}, {12, 30}}}),
                    moment_shape({64, 192, 128, 64, {{3, 40}, {50, 64}}}),
                    moment_shape({300, 200, 0, 200, {{0, 300}}}),
                    moment_shape({530, 408, 0, 408, {{0, 128}, {256, 301}, {512, 530}}})};
          },
          .typical = moment_shape({4096, 768, 0, 768, {{0, 4096}}})};
}

OpDescriptor spd_inverse_op() {
  return {.name = "spd_inverse",
          .functions = {"invert_spd"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            return {inverse_shape({1, 1}),   inverse_shape({2, 2}),   inverse_shape({63, 1}),
                    inverse_shape({64, 9}),  inverse_shape({65, 2}),  inverse_shape({200, 1}),
                    inverse_shape({200, 3}), inverse_shape({256, 9}), inverse_shape({450, 4})};
          },
          .typical = inverse_shape({768, 13})};
}

OpDescriptor kronecker_factors_op() {
  return {.name = "kronecker_factors",
          .functions = {"damp_factors", "take_inverse", "return_inverse", "fold_factors"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            return {factor_shape({1, 1, false}), factor_shape({5, 3, true}), factor_shape({70, 260, false}),
                    factor_shape({260, 70, true})};
          },
          .typical = factor_shape({768, 768, true})};
}

OpDescriptor precondition_op() {
  return {.name = "precondition",
          .functions = {"precondition"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            return {precondition_shape({1, 1}),           precondition_shape({3, 5}),
                    precondition_shape({8, 16, false}),   precondition_shape({67, 33}),
                    precondition_shape({130, 257}),       precondition_shape({300, 64, true, 1e-12}),
                    precondition_shape({64, 64, true, 0})};
          },
          .typical = precondition_shape({768, 768})};
}

}  // namespace plenum::ops
