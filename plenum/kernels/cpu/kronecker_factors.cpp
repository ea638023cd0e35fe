#include "plenum/kernels/cpu/kronecker_factors.h"

#include <algorithm>
#include <cmath>

#include "plenum/kernels/cpu/row_tasks.h"
#include "plenum/kernels/factor_scales.h"

namespace plenum::kernels::cpu {
namespace {

double& at(const tensor::TensorView& state_C, InverseState which) {
  return state_C.data<double>()[index_of(which)];
}

/// One factor of a pair: of its sums, its average if there is one, and what is made of them.
struct Factor {
  std::int64_t size;
  const float* sum;
  const float* average;  ///< may be null
  FactorParts parts;

  float element(std::int64_t i) const {
    const float newest = parts.newest * sum[i];
    return average == nullptr ? newest : newest + parts.kept * average[i];
  }
  double mean_of_diagonal() const {
    double trace = 0;
    for (std::int64_t i = 0; i < size; ++i) trace += double{element(i * size + i)};
    return trace / static_cast<double>(size);
  }
  /// Overwrites the lower half.
  void write_damped(const tensor::Stream& stream, double damping, float* damped) const {
    for_each_row(stream, size, [&](std::int64_t row, std::size_t) {
      const std::int64_t begin = row * size;
      for (std::int64_t i = begin; i <= begin + row; ++i) damped[i] = element(i);
      damped[begin + row] = static_cast<float>(double{damped[begin + row]} + damping);
    });
  }
};

Factor factor_of(tensor::ConstTensorView sum, double scale, const tensor::TensorView& average, double keep,
                 double average_weight) {
  const bool has_average = static_cast<bool>(average);
  return {.size = sum.size(0),
          .sum = sum.data<float>(),
          .average = has_average ? average.data<float>() : nullptr,
          .parts = factor_parts(scale, keep, has_average, average_weight)};
}

void swap_elements(const tensor::Stream& stream, const tensor::TensorView& x, const tensor::TensorView& y) {
  const std::int64_t size = x.size(0);
  for_each_row(stream, size, [&](std::int64_t row, std::size_t) {
    float* const of_x = x.data<float>() + row * size;
    std::swap_ranges(of_x, of_x + size, y.data<float>() + row * size);
  });
}

void swap_inverses(const tensor::Stream& stream, const TakeInverse& args) {
  swap_elements(stream, args.new_a_DD, args.a_DD);
  swap_elements(stream, args.new_b_EE, args.b_EE);
}

void fold(const tensor::Stream& stream, tensor::ConstTensorView sum, double scale,
          const tensor::TensorView& average, double keep) {
  const std::int64_t size = sum.size(0);
  const auto newest = static_cast<float>((1 - keep) * scale);
  const auto kept = static_cast<float>(keep);
  for_each_row(stream, size, [&](std::int64_t row, std::size_t) {
    const float* const from = sum.data<float>() + row * size;
    float* const to = average.data<float>() + row * size;
    for (std::int64_t i = 0; i <= row; ++i) to[i] = newest * from[i] + kept * to[i];
  });
}

void damp(const tensor::Stream& stream, const DampFactors& args) {
  const double weight = at(args.state_C, InverseState::AverageWeight);
  const RunningFactors& running = args.running;
  const Factor a = factor_of(args.sum_a_DD, args.a_scale, running.a_DD, running.keep, weight);
  const Factor b = factor_of(args.sum_b_EE, args.b_scale, running.b_EE, running.keep, weight);
  const Damping damping = damping_of(a.mean_of_diagonal(), b.mean_of_diagonal(), args.damping,
                                     [](double x) { return std::sqrt(x); });
  at(args.state_C, InverseState::HasFailed) = damping.is_usable ? 0 : 1;
  at(args.state_C, InverseState::LeastPivotA) = kPivotPart * damping.a;
  at(args.state_C, InverseState::LeastPivotB) = kPivotPart * damping.b;
  a.write_damped(stream, damping.a, args.a_DD.data<float>());
  b.write_damped(stream, damping.b, args.b_EE.data<float>());
}

void take(const tensor::Stream& stream, const TakeInverse& args) {
  const bool is_skipped = args.skipped_1 && *args.skipped_1.data<double>() > 0;
  const bool is_taken = at(args.state_C, InverseState::HasFailed) == 0 && !is_skipped;
  at(args.state_C, InverseState::WasReady) = at(args.state_C, InverseState::IsReady);
  at(args.state_C, InverseState::IsTaken) = is_taken ? 1 : 0;
  if (!is_taken) return;
  at(args.state_C, InverseState::IsReady) = 1;
  swap_inverses(stream, args);
}

void give_back(const tensor::Stream& stream, const ReturnInverse& args) {
  const TakeInverse& taken = args.taken;
  if (*taken.skipped_1.data<double>() == 0 || at(taken.state_C, InverseState::IsTaken) == 0) return;
  at(taken.state_C, InverseState::IsReady) = at(taken.state_C, InverseState::WasReady);
  at(taken.state_C, InverseState::IsTaken) = 0;
  swap_inverses(stream, taken);
}

void fold_both(const tensor::Stream& stream, const FoldFactors& args) {
  if (at(args.state_C, InverseState::IsTaken) == 0) return;
  const double keep = args.running.keep;
  fold(stream, args.sum_a_DD, args.a_scale, args.running.a_DD, keep);
  fold(stream, args.sum_b_EE, args.b_scale, args.running.b_EE, keep);
  double& weight = at(args.state_C, InverseState::AverageWeight);
  weight = keep * weight + (1 - keep);
}

}  // namespace

void damp_factors(const tensor::Stream& stream, std::span<const DampFactors> maps) {
  for (const DampFactors& args : maps) damp(stream, args);
}

void take_inverse(const tensor::Stream& stream, std::span<const TakeInverse> maps) {
  for (const TakeInverse& args : maps) take(stream, args);
}

void return_inverse(const tensor::Stream& stream, std::span<const ReturnInverse> maps) {
  for (const ReturnInverse& args : maps) give_back(stream, args);
}

void fold_factors(const tensor::Stream& stream, std::span<const FoldFactors> maps) {
  for (const FoldFactors& args : maps) fold_both(stream, args);
}

}  // namespace plenum::kernels::cpu
