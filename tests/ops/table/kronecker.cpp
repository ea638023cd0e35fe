#include "tests/reference/kronecker.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

  std::size_t scratch_bytes() const override { return kernels::kronecker_scratch_bytes(device_); }
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
  std::vector<std::int64_t> sizes;
  std::int64_t cut;       ///< the steps of a piece
  int not_positive = -1;  ///< the matrix that has no inverse
};

class InverseCase final : public OpCase {
 public:
  InverseCase(tensor::Device device, const InverseOptions& o)
      : device_(device), options_(o), room_({workspace::inverse_room_elements(device, o.sizes)}, NAN) {
    for (std::size_t i = 0; i < o.sizes.size(); ++i) {
      matrices_.push_back(begun(i));
      states_.push_back(begun_state());
      // Only the lower half is read.
      const std::int64_t N = o.sizes[i];
      for (std::int64_t row = 0; row < N; ++row) {
        for (std::int64_t j = row + 1; j < N; ++j) matrices_[i].values()[at(row * N + j)] = NAN;
      }
    }
  }

  std::size_t scratch_bytes() const override { return kernels::kronecker_scratch_bytes(device_); }
  std::vector<OpCall> calls(Arguments& arguments) override {
    std::vector<kernels::SpdMatrix> matrices;
    std::int64_t num_steps = 0;
    double flops = 0;
    double bytes = 0;
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      matrices.push_back({arguments.out(matrices_[i]), InverseState::LeastPivotA, arguments.out(states_[i])});
      num_steps = std::max(num_steps, kernels::num_inverse_steps(options_.sizes[i]));
      const auto size = static_cast<double>(options_.sizes[i]);
      flops += size * size * size;
      bytes += bytes_of({matrices.back().matrix_NN, matrices.back().matrix_NN});
    }
    const tensor::TensorView room = arguments.out(room_);
    const auto run = [=, cut = options_.cut](const auto& stream) {
      kernels::InvertSpd args = {.matrices = matrices, .room = room};
      for (; args.first_step < num_steps; args.first_step = args.end_step) {
        args.end_step = std::min(num_steps, args.first_step + cut);
        kernels::invert_spd(stream, args);
      }
    };
    return {{"invert_spd", run, flops, bytes}};
  }
  std::vector<OpResult> results() const override {
    std::vector<OpResult> results;
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      const bool has_inverse = std::cmp_not_equal(i, options_.not_positive);
      results.push_back({"failed",
                         {states_[i].values()[kernels::index_of(InverseState::HasFailed)]},
                         {has_inverse ? 0.0 : 1.0},
                         0});
      if (!has_inverse) continue;
      results.push_back({"inverse", matrices_[i].doubles(),
                         reference::inverse(begun(i).doubles(), at(options_.sizes[i])), kInverseRelative});
    }
    return results;
  }

 private:
  /// Rounding times a condition of some hundred.
  static constexpr double kInverseRelative = 2e-4;

  TestTensor<float> begun(std::size_t i) const {
    const std::int64_t N = options_.sizes[i];
    TestTensor<float> matrix = positive_matrix(N, 1 + i);
    if (std::cmp_equal(i, options_.not_positive)) matrix.values()[at(N / 2 * (N + 1))] = -1;
    return matrix;
  }

  tensor::Device device_;
  InverseOptions options_;
  std::vector<TestTensor<float>> matrices_;
  std::vector<TestTensor<double>> states_;
  TestTensor<float> room_;
};

OpShape inverse_shape(const InverseOptions& o) {
  return op_shape<InverseCase>(fmt::format("N={} by {} steps{}", fmt::join(o.sizes, ","), o.cut,
                                           o.not_positive < 0 ? "" : ", one fails"),
                               o);
}

struct FactorOptions {
  std::vector<std::pair<std::int64_t, std::int64_t>> widths;  ///< D and E of each map
  bool has_average;
};

constexpr double kScaleA = 0.25, kScaleB = 8, kDamping = 0.01, kKeep = 0.75, kWeight = 0.4375;

/// A map with its factors.
struct FactorMap {
  FactorMap(std::int64_t in_width, std::int64_t out_width, std::uint64_t map_seed)
      : D(in_width), E(out_width), seed(10 * map_seed) {
    state_at(state_C, InverseState::AverageWeight) = kWeight;
    state_at(state_C, InverseState::HasFailed) = 1;
  }

  TestTensor<float> begun_average_a() const { return positive_matrix(D, seed + 3); }
  TestTensor<float> begun_average_b() const { return positive_matrix(E, seed + 4, 1e-2); }
  TestTensor<float> begun_a() const { return random_tensor({D, D}, seed + 5); }

  std::int64_t D, E;
  std::uint64_t seed;
  TestTensor<float> sum_a{positive_matrix(D, seed + 1, 3)}, sum_b{positive_matrix(E, seed + 2, 1e-3)};
  TestTensor<float> average_a{begun_average_a()}, average_b{begun_average_b()};
  TestTensor<float> new_a{{D, D}, 0.5F}, new_b{{E, E}, 0.5F};
  TestTensor<float> a{begun_a()}, b{random_tensor({E, E}, seed + 6)};
  TestTensor<double> state_C = begun_state();
  // As calls left them.
  std::vector<double> damped_a = {}, damped_b = {}, taken_a = {}, returned_a = {};
  double returned_ready = 0;
};

/// One refresh: what is folded and in use is damped, taken, given back by a skipped step, and taken again.
class FactorCase final : public OpCase {
 public:
  FactorCase(tensor::Device, const FactorOptions& o) : options_(o) {
    for (const auto& [D, E] : o.widths) maps_.emplace_back(D, E, maps_.size());
  }

  std::vector<OpCall> calls(Arguments& arguments) override {
    std::vector<kernels::DampFactors> damp;
    std::vector<kernels::TakeInverse> take;
    std::vector<kernels::ReturnInverse> back;
    std::vector<kernels::FoldFactors> fold;
    const tensor::ConstTensorView skipped = arguments.in(skipped_);
    double bytes = 0;
    for (FactorMap& map : maps_) {
      const tensor::TensorView state = arguments.out(map.state_C);
      const kernels::RunningFactors running =
          options_.has_average
              ? kernels::RunningFactors{arguments.out(map.average_a), arguments.out(map.average_b), kKeep}
              : kernels::RunningFactors{};
      const tensor::ConstTensorView sum_a = arguments.in(map.sum_a), sum_b = arguments.in(map.sum_b);
      const tensor::TensorView new_a = arguments.out(map.new_a), new_b = arguments.out(map.new_b);
      damp.push_back({sum_a, sum_b, kScaleA, kScaleB, running, kDamping, new_a, new_b, state});
      take.push_back({new_a, new_b, arguments.out(map.a), arguments.out(map.b), {}, state});
      back.push_back({take.back()});
      back.back().taken.skipped_1 = skipped;
      fold.push_back({sum_a, sum_b, kScaleA, kScaleB, running, state});
      bytes += bytes_of({sum_a, sum_b});
    }
    const auto take_again = [=, has_average = options_.has_average](const auto& stream) {
      kernels::take_inverse(stream, take);
      if (has_average) kernels::fold_factors(stream, fold);
    };
    return {{"damp_factors", [=](const auto& stream) { kernels::damp_factors(stream, damp); }, 0, 2 * bytes},
            {"take_inverse", [=](const auto& stream) { kernels::take_inverse(stream, take); }, 0, 4 * bytes},
            {"return_inverse", [=](const auto& stream) { kernels::return_inverse(stream, back); }, 0, 0},
            {"fold_factors", take_again, 0, bytes}};
  }

  void note(const std::string& function) override {
    for (FactorMap& map : maps_) {
      if (function == "damp_factors") {
        map.damped_a = map.new_a.doubles();
        map.damped_b = map.new_b.doubles();
      }
      if (function == "take_inverse") map.taken_a = map.a.doubles();
      if (function == "return_inverse") {
        map.returned_a = map.a.doubles();
        map.returned_ready = state_at(map.state_C, InverseState::IsReady);
      }
    }
  }

  std::vector<OpResult> results() const override {
    std::vector<OpResult> all;
    for (const FactorMap& map : maps_) add_results(map, all);
    return all;
  }

 private:
  static constexpr double kStep = 1e-6;

  void add_results(const FactorMap& map, std::vector<OpResult>& all) const {
    const auto [D, E] = std::pair(map.D, map.E);
    const auto state = [&](InverseState which) {
      return std::vector<double>{map.state_C.values()[kernels::index_of(which)]};
    };
    const std::vector<double> folded_a = folded(map.begun_average_a().doubles(), map.sum_a, kScaleA);
    const std::vector<double> folded_b = folded(map.begun_average_b().doubles(), map.sum_b, kScaleB);
    const double weight = kKeep * kWeight + (1 - kKeep);
    const bool has_average = options_.has_average;
    std::vector<double> a = has_average ? times(folded_a, 1 / weight) : times(map.sum_a.doubles(), kScaleA);
    std::vector<double> b = has_average ? times(folded_b, 1 / weight) : times(map.sum_b.doubles(), kScaleB);
    reference::damp(a, at(D), b, at(E), kDamping);
    const std::vector<OpResult> always = {
        {"damped A", lower(map.damped_a, D), lower(a, D), kStep},
        {"damped B", lower(map.damped_b, E), lower(b, E), kStep},
        {"taken", lower(map.taken_a, D), lower(map.damped_a, D), 0},
        {"given back", map.returned_a, map.begun_a().doubles(), 0},
        {"not ready again", {map.returned_ready}, {0}, 0},
        {"taken again", lower(map.a.doubles(), D), lower(map.damped_a, D), 0},
        {"ready", state(InverseState::IsReady), {1}, 0},
        {"not failed", state(InverseState::HasFailed), {0}, 0}};
    all.insert(all.end(), always.begin(), always.end());
    if (!has_average) return;
    all.push_back({"average of A", lower(map.average_a.doubles(), D), lower(folded_a, D), kStep});
    all.push_back({"average of B", lower(map.average_b.doubles(), E), lower(folded_b, E), kStep});
    all.push_back({"weight", state(InverseState::AverageWeight), {weight}, kStep});
  }
  static std::vector<double> times(std::vector<double> values, double factor) {
    for (double& value : values) value *= factor;
    return values;
  }
  static std::vector<double> folded(std::vector<double> average, const TestTensor<float>& sum, double scale) {
    const std::vector<double> added = sum.doubles();
    for (std::size_t i = 0; i < added.size(); ++i)
      average[i] = kKeep * average[i] + (1 - kKeep) * scale * added[i];
    return average;
  }

  FactorOptions options_;
  std::deque<FactorMap> maps_;
  TestTensor<double> skipped_{{1}, 1.0};
};

OpShape factor_shape(const FactorOptions& o) {
  std::string widths;
  for (const auto& [D, E] : o.widths) widths += fmt::format("{}D={} E={}", widths.empty() ? "" : ", ", D, E);
  if (o.widths.size() > 3) widths = fmt::format("{} maps", o.widths.size());
  return op_shape<FactorCase>(widths + (o.has_average ? " averaged" : ""), o);
}

struct PreconditionOptions {
  std::int64_t E, D;
  double scale = 1;          ///< of the gradient
  std::int64_t count = 1;    ///< maps of that shape, side by side
  int not_ready = -1;        ///< the map that has no inverse yet
  bool is_reversed = false;  ///< listed from the last to the first
};

class PreconditionCase final : public OpCase {
 public:
  PreconditionCase(tensor::Device device, const PreconditionOptions& o)
      : device_(device),
        options_(o),
        inverse_a_({o.count * o.D, o.D}),
        inverse_b_({o.count * o.E, o.E}),
        gradient_(begun_gradient()),
        room_({workspace::precondition_room_elements(device, o.E * o.D, o.count)}, NAN),
        state_({o.count * kernels::kNumInverseStates}) {
    for (std::int64_t i = 0; i < o.count; ++i) {
      const auto put = [i](const TestTensor<float>& from, TestTensor<float>& to) {
        std::ranges::copy(from.values(), to.values().begin() + i * std::ssize(from.values()));
      };
      put(inverse_a_of(i), inverse_a_);
      put(inverse_b_of(i), inverse_b_);
      state_.values()[at(i * kernels::kNumInverseStates) + kernels::index_of(InverseState::IsReady)] =
          i == o.not_ready ? 0 : 1;
    }
  }

  std::size_t scratch_bytes() const override { return kernels::kronecker_scratch_bytes(device_); }
  std::vector<OpCall> calls(Arguments& arguments) override {
    const auto [E, D] = std::pair(options_.E, options_.D);
    const tensor::ConstTensorView a = arguments.in(inverse_a_), b = arguments.in(inverse_b_),
                                  state = arguments.in(state_);
    const tensor::TensorView gradient = arguments.out(gradient_);
    std::vector<kernels::PreconditionedMap> maps;
    for (std::int64_t i = 0; i < options_.count; ++i)
      maps.push_back({.inverse_a_DD = a.rows(i * D, D),
                      .inverse_b_EE = b.rows(i * E, E),
                      .state_C = state.rows(i * kernels::kNumInverseStates, kernels::kNumInverseStates),
                      .gradient_ED = gradient.rows(i * E, E)});
    if (options_.is_reversed) std::ranges::reverse(maps);
    const tensor::TensorView room = arguments.out(room_);
    const auto run = [=](const auto& stream) { kernels::precondition(stream, {.maps = maps, .room = room}); };
    const auto products = static_cast<double>(2 * options_.count * E * D) * static_cast<double>(E + D);
    return {{"precondition", run, products, bytes_of({a, b, gradient, gradient})}};
  }
  std::vector<OpResult> results() const override {
    const std::int64_t size = options_.E * options_.D;
    const auto part = [size](const TestTensor<float>& all, std::int64_t i) {
      const std::vector<double> values = all.doubles();
      return std::vector<double>(values.begin() + i * size, values.begin() + (i + 1) * size);
    };
    std::vector<OpResult> results;
    for (std::int64_t i = 0; i < options_.count; ++i) {
      const std::vector<double> before = part(begun_gradient(), i);
      if (i == options_.not_ready) {
        results.push_back({"gradient", part(gradient_, i), before, 0});
        continue;
      }
      results.push_back({"gradient", part(gradient_, i),
                         reference::preconditioned(inverse_a_of(i).doubles(), at(options_.D),
                                                   inverse_b_of(i).doubles(), at(options_.E), before),
                         device_ == tensor::Device::Cuda ? kTensorFloat32Relative : kFloat32Relative});
    }
    return results;
  }

 private:
  TestTensor<float> inverse_a_of(std::int64_t i) const {
    return positive_matrix(options_.D, 1 + at(3 * i), 5);
  }
  TestTensor<float> inverse_b_of(std::int64_t i) const {
    return positive_matrix(options_.E, 2 + at(3 * i), 0.1);
  }
  TestTensor<float> begun_gradient() const {
    return random_tensor({options_.count * options_.E, options_.D}, 3, options_.scale);
  }

  tensor::Device device_;
  PreconditionOptions options_;
  TestTensor<float> inverse_a_, inverse_b_, gradient_, room_;
  TestTensor<double> state_;
};

OpShape precondition_shape(const PreconditionOptions& o) {
  return op_shape<PreconditionCase>(
      fmt::format("{} of E={} D={}{}{} scale {}", o.count, o.E, o.D, o.not_ready < 0 ? "" : " one not ready",
                  o.is_reversed ? " reversed" : "", o.scale),
      o);
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
            return {inverse_shape({{1}, 1}),
                    inverse_shape({{2}, 2}),
                    inverse_shape({{63}, 1}),
                    inverse_shape({{64}, 9}),
                    inverse_shape({{65}, 2}),
                    inverse_shape({{200}, 1}),
                    inverse_shape({{200}, 3}),
                    inverse_shape({{256}, 9}),
                    inverse_shape({{450}, 4}),
                    inverse_shape({{200, 200, 200}, 9}),
                    inverse_shape({{450, 256, 200, 130, 65, 64, 63, 1}, 9}),
                    inverse_shape({{1, 200, 63, 65, 64}, 2}),
                    inverse_shape({{200, 130, 200}, 9, 1}),
                    inverse_shape({std::vector<std::int64_t>(70, 66), 9, 33})};
          },
          .typical = inverse_shape({{768}, 13})};
}

OpDescriptor kronecker_factors_op() {
  return {.name = "kronecker_factors",
          .functions = {"damp_factors", "take_inverse", "return_inverse", "fold_factors"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            return {factor_shape({{{1, 1}}, false}), factor_shape({{{5, 3}}, true}),
                    factor_shape({{{70, 260}, {1, 2}, {65, 200}}, false}),
                    factor_shape({{{260, 70}, {64, 64}}, true}),
                    factor_shape({std::vector<std::pair<std::int64_t, std::int64_t>>(50, {7, 9}), true})};
          },
          .typical = factor_shape({{{768, 768}}, true})};
}

OpDescriptor precondition_op() {
  return {.name = "precondition",
          .functions = {"precondition"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            return {precondition_shape({1, 1}),
                    precondition_shape({3, 5}),
                    precondition_shape({8, 16, 1, 1, 0}),
                    precondition_shape({67, 33}),
                    precondition_shape({130, 257}),
                    precondition_shape({300, 64, 1e-12}),
                    precondition_shape({64, 64, 0}),
                    precondition_shape({65, 200, 1, 3}),
                    precondition_shape({64, 128, 1, 5, 2}),
                    precondition_shape({63, 64, 1, 3, -1, true})};
          },
          .typical = precondition_shape({768, 768})};
}

}  // namespace plenum::ops
