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

double scalar(const MuonStep& args, StepScalar which) {
  return args.scalars_C.data<double>()[index_of(which)];
}

/// One matrix of the flat buffers.
struct Matrix {
  Matrix(const MuonStep& args, const FlatMatrices& group, std::int64_t index)
      : gradient(args.gradient_N.data<float>() + group.begin_of(index)),
        weight(args.weight_N.data<float>() + group.begin_of(index)),
        moment(args.moment_N.data<float>() + group.begin_of(index)),
        iterate(args.iterate_N.data<float>() + group.begin_of(index)),
        count(group.num_elements()) {}

  const float* gradient;
  float *weight, *moment, *iterate;
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
double update_moment(const tensor::Stream& stream, const MuonStep& args, const Matrix& matrix) {
  const auto scale = static_cast<float>(scalar(args, StepScalar::GradientScale));
  const auto kept = static_cast<float>(args.momentum);
  const auto rest = static_cast<float>(1 - args.momentum);
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

void update_weight(const tensor::Stream& stream, const MuonStep& args, const FlatMatrices& group,
                   const Matrix& matrix, const float* update) {
  const auto rate = static_cast<float>(scalar(args, StepScalar::LearningRate));
  const auto factor = static_cast<float>(muon_factor(group));
  const float decay = group.is_decayed ? static_cast<float>(args.decay) : 0.0F;
  for_parts(stream, FlatParts(matrix.count), matrix.count,
            [&](std::size_t, std::int64_t begin, std::int64_t end) {
              for_vectors(begin, end, [&](std::int64_t i, auto lanes) {
                const Vec weight = load_first(matrix.weight + i, lanes);
                const Vec taken = load_first(update + i, lanes) * factor + weight * decay;
                store_first(matrix.weight + i, weight - taken * rate, lanes);
              });
            });
}

void step_matrix(const tensor::Stream& stream, const MuonStep& args, const FlatMatrices& group,
                 const Matrix& matrix) {
  normalise(stream, matrix, update_moment(stream, args, matrix));
  float* const update = args.room.data<float>();
  const std::int64_t K = group.least_size();
  newton_schulz(stream, {.rows = group.rows,
                         .columns = group.columns,
                         .x = {matrix.iterate, tensor::Shape{matrix.count}},
                         .y = {update, tensor::Shape{matrix.count}},
                         .squares_2BKK = {update + matrix.count, tensor::Shape{2, 1, K, K}}});
  update_weight(stream, args, group, matrix, update);
}

}  // namespace

void muon_step(const tensor::Stream& stream, const MuonStep& args) {
  if (scalar(args, StepScalar::IsSkipped) > 0) return;
  for (const FlatMatrices& group : args.groups) {
    for (std::int64_t i = 0; i < group.count; ++i) step_matrix(stream, args, group, Matrix(args, group, i));
  }
}

}  // namespace plenum::kernels::cpu
