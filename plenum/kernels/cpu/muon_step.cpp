#include "plenum/kernels/cpu/muon_step.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "plenum/kernels/cpu/flat_parts.h"
#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/newton_schulz.h"
#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {
namespace {

/// Below which a gradient is not made longer.
constexpr double kLeastNorm = 1e-7;

double scalar(const tensor::ConstTensorView& scalars_C, StepScalar which) {
  return scalars_C.data<double>()[index_of(which)];
}

/// The flat buffers that directions are made in, and the factors of a step.
struct Moments {
  const float* gradient;
  float *moment, *iterate;
  float scale;  ///< of the gradient
  float kept, rest;
};
template <typename Args>
Moments moments_of(const Args& args) {
  return {.gradient = args.gradient_N.template data<float>(),
          .moment = args.moment_N.template data<float>(),
          .iterate = args.iterate_N.template data<float>(),
          .scale = static_cast<float>(scalar(args.scalars_C, StepScalar::GradientScale)),
          .kept = static_cast<float>(args.momentum),
          .rest = static_cast<float>(1 - args.momentum)};
}

/// Their part of one matrix.
struct Matrix {
  Matrix(const Moments& moments, const FlatMatrices& group, std::int64_t index)
      : gradient(moments.gradient + group.begin_of(index)),
        moment(moments.moment + group.begin_of(index)),
        iterate(moments.iterate + group.begin_of(index)),
        count(group.num_elements()) {}

  const float* gradient;
  float *moment, *iterate;
  std::int64_t count;
};

/// Calls body(part, begin, end) for all parts, on the stream's threads.
template <typename Body>
void for_parts(const tensor::Stream& stream, const FlatParts& parts, std::int64_t count, Body body) {
  stream.pool().run(parts.num_parts, [&](std::size_t part, std::size_t) {
    const std::int64_t begin = static_cast<std::int64_t>(part) * parts.size;
    body(part, begin, std::min(begin + parts.size, count));
  });
}

/// Updates the moment, leaves the direction to iterate from, and returns its norm.
double update_moment(const tensor::Stream& stream, const Moments& moments, const Matrix& matrix) {
  const float scale = moments.scale;
  const float kept = moments.kept;
  const float rest = moments.rest;
  const FlatParts parts(matrix.count);
  std::array<double, kMostFlatParts> sums{};
  for_parts(stream, parts, matrix.count, [&](std::size_t part, std::int64_t begin, std::int64_t end) {
    SquareSum squares;
    for_vectors(begin, end, [&](std::int64_t i, auto lanes) {
      const Vec added = load_first(matrix.gradient + i, lanes) * scale * rest;
      const Vec moment = load_first(matrix.moment + i, lanes) * kept + added;
      const Vec direction = moment * kept + added;
      store_first(matrix.moment + i, moment, lanes);
      store_first(matrix.iterate + i, direction, lanes);
      squares.add(direction);
    });
    sums[part] = squares.total();
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

void normalise(const tensor::Stream& stream, const Matrix& matrix, double norm) {
  const auto factor = static_cast<float>(1 / std::max(norm, kLeastNorm));
  for_parts(stream, FlatParts(matrix.count), matrix.count,
            [&](std::size_t, std::int64_t begin, std::int64_t end) {
              for_vectors(begin, end, [&](std::int64_t i, auto lanes) {
                store_first(matrix.iterate + i, load_first(matrix.iterate + i, lanes) * factor, lanes);
              });
            });
}

/// Updates the moment of a matrix and makes its orthogonal direction.
void make_direction(const tensor::Stream& stream, const Moments& moments, const FlatMatrices& group,
                    const Matrix& matrix, float* direction, float* squares) {
  normalise(stream, matrix, update_moment(stream, moments, matrix));
  const std::int64_t K = group.least_size();
  newton_schulz(stream, {.rows = group.rows,
                         .columns = group.columns,
                         .x = {matrix.iterate, tensor::Shape{matrix.count}},
                         .y = {direction, tensor::Shape{matrix.count}},
                         .squares_2BKK = {squares, tensor::Shape{2, 1, K, K}}});
}

void update_weight(const tensor::Stream& stream, const FlatMatrices& group, float rate, double decay,
                   const float* direction, float* weights) {
  const auto factor = static_cast<float>(muon_factor(group));
  const float kept_decay = group.is_decayed ? static_cast<float>(decay) : 0.0F;
  const std::int64_t count = group.num_elements();
  for_parts(stream, FlatParts(count), count, [&](std::size_t, std::int64_t begin, std::int64_t end) {
    for_vectors(begin, end, [&](std::int64_t i, auto lanes) {
      const Vec weight = load_first(weights + i, lanes);
      const Vec taken = load_first(direction + i, lanes) * factor + weight * kept_decay;
      store_first(weights + i, weight - taken * rate, lanes);
    });
  });
}

}  // namespace

void muon_step(const tensor::Stream& stream, const MuonStep& args) {
  if (scalar(args.scalars_C, StepScalar::IsSkipped) > 0) return;
  const auto rate = static_cast<float>(scalar(args.scalars_C, StepScalar::LearningRate));
  const Moments moments = moments_of(args);
  for (const FlatMatrices& group : args.groups) {
    auto* const direction = args.room.data<float>();
    for (std::int64_t i = 0; i < group.count; ++i) {
      make_direction(stream, moments, group, Matrix(moments, group, i), direction,
                     direction + group.num_elements());
      update_weight(stream, group, rate, args.decay, direction,
                    args.weight_N.data<float>() + group.begin_of(i));
    }
  }
}

void muon_directions(const tensor::Stream& stream, const MuonDirections& args) {
  if (scalar(args.scalars_C, StepScalar::IsSkipped) > 0) return;
  const Moments moments = moments_of(args);
  for (const FlatMatrices& group : args.groups) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      make_direction(stream, moments, group, Matrix(moments, group, i),
                     args.gradient_N.data<float>() + group.begin_of(i), args.room.data<float>());
    }
  }
  for (const FlatMatrices& group : args.others) {
    for (std::int64_t i = 0; i < group.count; ++i) update_moment(stream, moments, Matrix(moments, group, i));
  }
}

void muon_weights(const tensor::Stream& stream, const MuonWeights& args) {
  if (scalar(args.scalars_C, StepScalar::IsSkipped) > 0) return;
  const auto rate = static_cast<float>(scalar(args.scalars_C, StepScalar::LearningRate));
  for (const FlatMatrices& group : args.groups) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      update_weight(stream, group, rate, args.decay, args.direction_N.data<float>() + group.begin_of(i),
                    args.weight_N.data<float>() + group.begin_of(i));
    }
  }
}

}  // namespace plenum::kernels::cpu
