#include "plenum/kernels/cpu/optimizer_step.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "plenum/kernels/cpu/flat_parts.h"
#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {
namespace {

Vec square_root(Vec values) {
  Vec roots;
  for (std::size_t i = 0; i < kLanes; ++i) roots[i] = std::sqrt(values[i]);
  return roots;
}

double scalar(const AdamStep& args, StepScalar which) {
  return args.scalars_C.data<double>()[index_of(which)];
}

/// The buffers and scalars of a step, as the inner loops use them.
struct Step {
  explicit Step(const AdamStep& args)
      : gradient(args.gradient_N.data<float>()),
        weight(args.weight_N.data<float>()),
        first_moment(args.first_moment_N.data<float>()),
        second_moment(args.second_moment_N.data<float>()),
        scale(static_cast<float>(scalar(args, StepScalar::GradientScale))),
        beta1(static_cast<float>(args.beta1)),
        rest1(static_cast<float>(1 - args.beta1)),
        beta2(static_cast<float>(args.beta2)),
        rest2(static_cast<float>(1 - args.beta2)),
        first_factor(static_cast<float>(1 / scalar(args, StepScalar::Correction1))),
        root_factor(static_cast<float>(1 / std::sqrt(scalar(args, StepScalar::Correction2)))),
        epsilon(static_cast<float>(args.epsilon)) {}

  const float* gradient;
  float *weight, *first_moment, *second_moment;
  float scale, beta1, rest1, beta2, rest2;
  float first_factor;  ///< what m is multiplied by
  float root_factor;   ///< what sqrt(v) is multiplied by
  float epsilon;

  struct Moments {
    Vec first, second;
  };

  template <typename Lanes>
  Moments update_moments(std::int64_t i, Lanes lanes) const {
    const Vec g = load_first(gradient + i, lanes) * scale;
    const Moments moments = {load_first(first_moment + i, lanes) * beta1 + g * rest1,
                             load_first(second_moment + i, lanes) * beta2 + g * g * rest2};
    store_first(first_moment + i, moments.first, lanes);
    store_first(second_moment + i, moments.second, lanes);
    return moments;
  }

  /// What is taken from weights, for a learning rate of 1.
  Vec direction(const Moments& moments, Vec weights, float decay) const {
    const Vec root = square_root(moments.second) * root_factor + epsilon;
    return moments.first * first_factor / root + weights * decay;
  }
};

float decay_of(const AdamStep& args, const FlatRange& range) {
  return range.is_decayed ? static_cast<float>(args.decay) : 0.0F;
}

double rate_of(const AdamStep& args, const FlatRange& range) {
  return scalar(args, StepScalar::LearningRate) * range.rate_factor;
}

void adam_range(const Step& step, std::int64_t begin, std::int64_t end, float decay, float rate) {
  for_vectors(begin, end, [&](std::int64_t i, auto lanes) {
    const Step::Moments moments = step.update_moments(i, lanes);
    const Vec weights = load_first(step.weight + i, lanes);
    store_first(step.weight + i, weights - step.direction(moments, weights, decay) * rate, lanes);
  });
}

struct LambNorms {
  double weight_squares = 0;
  double direction_squares = 0;

  /// By which the learning rate of the range is multiplied.
  double ratio() const {
    return weight_squares > 0 && direction_squares > 0 ? std::sqrt(weight_squares / direction_squares) : 1;
  }
};

LambNorms moments_of_part(const Step& step, std::int64_t begin, std::int64_t end, float decay) {
  SquareSum weight_squares;
  SquareSum direction_squares;
  for_vectors(begin, end, [&](std::int64_t i, auto lanes) {
    const Step::Moments moments = step.update_moments(i, lanes);
    const Vec weights = load_first(step.weight + i, lanes);
    weight_squares.add(weights);
    direction_squares.add(step.direction(moments, weights, decay));
  });
  return {weight_squares.total(), direction_squares.total()};
}

void weights_of_part(const Step& step, std::int64_t begin, std::int64_t end, float decay, float rate) {
  for_vectors(begin, end, [&](std::int64_t i, auto lanes) {
    const Step::Moments moments = {load_first(step.first_moment + i, lanes),
                                   load_first(step.second_moment + i, lanes)};
    const Vec weights = load_first(step.weight + i, lanes);
    store_first(step.weight + i, weights - step.direction(moments, weights, decay) * rate, lanes);
  });
}

/// A range and its parts.
struct RangeParts : FlatParts {
  explicit RangeParts(const FlatRange& range) : FlatParts(range.end - range.begin), range(range) {}

  std::int64_t begin_of(std::size_t part) const {
    return std::min(range.begin + static_cast<std::int64_t>(part) * size, range.end);
  }

  const FlatRange& range;
};

LambNorms moments_of_range(const tensor::Stream& stream, const Step& step, const FlatRange& range,
                           float decay) {
  const RangeParts parts(range);
  std::array<LambNorms, kMostFlatParts> norms;
  stream.pool().run(parts.num_parts, [&](std::size_t part, std::size_t) {
    norms[part] = moments_of_part(step, parts.begin_of(part), parts.begin_of(part + 1), decay);
  });
  LambNorms total;
  for (std::size_t part = 0; part < parts.num_parts; ++part) {
    total.weight_squares += norms[part].weight_squares;
    total.direction_squares += norms[part].direction_squares;
  }
  return total;
}

void weights_of_range(const tensor::Stream& stream, const Step& step, const FlatRange& range, float decay,
                      const LambNorms& norms, double learning_rate) {
  const auto rate = static_cast<float>(learning_rate * (range.is_decayed ? norms.ratio() : 1));
  const RangeParts parts(range);
  stream.pool().run(parts.num_parts, [&](std::size_t part, std::size_t) {
    weights_of_part(step, parts.begin_of(part), parts.begin_of(part + 1), decay, rate);
  });
}

double sum_of_squares(const tensor::Stream& stream, std::span<const float> values_N) {
  const auto count = static_cast<std::int64_t>(values_N.size());
  const FlatParts parts(count);
  std::array<double, kMostFlatParts> sums{};
  stream.pool().run(parts.num_parts, [&](std::size_t part, std::size_t) {
    const std::int64_t begin = static_cast<std::int64_t>(part) * parts.size;
    SquareSum sum;
    for_vectors(begin, std::min(begin + parts.size, count),
                [&](std::int64_t i, auto lanes) { sum.add(load_first(values_N.data() + i, lanes)); });
    sums[part] = sum.total();
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace

void add_gradient_squares(const tensor::Stream& stream, const GradientSquares& args) {
  double* const scalars = args.scalars_C.data<double>();
  scalars[index_of(StepScalar::GradientSquares)] += sum_of_squares(stream, args.gradient_N.span<float>());
}

void decide_step(const tensor::Stream&, const StepDecision& args) {
  double* const scalars = args.scalars_C.data<double>();
  const auto at = [&](StepScalar which) -> double& { return scalars[index_of(which)]; };
  const double norm = std::sqrt(at(StepScalar::GradientSquares));
  double loss = 0;
  for (std::size_t i = 0; i < batch::kMostObjectives; ++i) loss += at(loss_of(i));
  const bool is_skipped = !std::isfinite(loss) || !std::isfinite(norm);
  if (!is_skipped) at(StepScalar::NumUpdates) += 1;
  const auto correction = [&](double beta) {
    return args.is_bias_corrected ? 1 - std::pow(beta, at(StepScalar::NumUpdates)) : 1.0;
  };
  at(StepScalar::GradientNorm) = norm;
  at(StepScalar::GradientScale) = args.clip_norm == 0 || norm <= args.clip_norm ? 1 : args.clip_norm / norm;
  at(StepScalar::IsSkipped) = is_skipped ? 1 : 0;
  at(StepScalar::Correction1) = correction(args.beta1);
  at(StepScalar::Correction2) = correction(args.beta2);
}

void adam_step(const tensor::Stream& stream, const AdamStep& args) {
  if (args.ranges.empty() || scalar(args, StepScalar::IsSkipped) > 0) return;
  const Step step(args);
  const auto num_blocks = static_cast<std::size_t>((args.ranges.back().end + kFlatBlock - 1) / kFlatBlock);
  stream.pool().run(num_blocks, [&](std::size_t block, std::size_t) {
    const std::int64_t begin = static_cast<std::int64_t>(block) * kFlatBlock;
    const std::int64_t end = begin + kFlatBlock;
    auto range = std::partition_point(args.ranges.begin(), args.ranges.end(),
                                      [&](const FlatRange& candidate) { return candidate.end <= begin; });
    for (; range != args.ranges.end() && range->begin < end; ++range) {
      adam_range(step, std::max(begin, range->begin), std::min(end, range->end), decay_of(args, *range),
                 static_cast<float>(rate_of(args, *range)));
    }
  });
}

void lamb_step(const tensor::Stream& stream, const AdamStep& args) {
  if (scalar(args, StepScalar::IsSkipped) > 0) return;
  const Step step(args);
  for (const FlatRange& range : args.ranges) {
    const float decay = decay_of(args, range);
    const LambNorms norms = moments_of_range(stream, step, range, decay);
    weights_of_range(stream, step, range, decay, norms, rate_of(args, range));
  }
}

void lamb_moments(const tensor::Stream& stream, const LambHalf& args) {
  if (scalar(args.step, StepScalar::IsSkipped) > 0) return;
  const Step step(args.step);
  double* squares = args.squares_R2.data<double>();
  for (const FlatRange& range : args.step.ranges) {
    const LambNorms norms = moments_of_range(stream, step, range, decay_of(args.step, range));
    *squares++ = norms.weight_squares;
    *squares++ = norms.direction_squares;
  }
}

void lamb_weights(const tensor::Stream& stream, const LambHalf& args) {
  if (scalar(args.step, StepScalar::IsSkipped) > 0) return;
  const Step step(args.step);
  const double* squares = args.squares_R2.data<double>();
  for (const FlatRange& range : args.step.ranges) {
    const LambNorms norms{squares[0], squares[1]};
    squares += 2;
    weights_of_range(stream, step, range, decay_of(args.step, range), norms, rate_of(args.step, range));
  }
}

}  // namespace plenum::kernels::cpu
