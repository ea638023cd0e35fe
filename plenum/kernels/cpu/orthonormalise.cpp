#include "plenum/kernels/cpu/orthonormalise.h"

#include <algorithm>
#include <cmath>

#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {
namespace {

constexpr int kPasses = 2;

float dot(const float* a, const float* b, std::int64_t count) {
  Vec sums = {};
  for_vectors(0, count, [&](std::int64_t i, auto lanes) {
    sums += load_first(a + i, lanes) * load_first(b + i, lanes);
  });
  return sum(sums);
}

/// Divides a row by its length.
void normalise(float* row, std::int64_t row_index, std::int64_t count) {
  const float length = std::sqrt(dot(row, row, count));
  if (!(length > 0) || !std::isfinite(length)) {
    std::fill_n(row, count, 0.0F);
    row[row_index] = 1;
    return;
  }
  for_vectors(0, count, [&](std::int64_t i, auto lanes) {
    store_first(row + i, load_first(row + i, lanes) / length, lanes);
  });
}

void take_away(const float* unit, float* row, std::int64_t count) {
  const float part = dot(unit, row, count);
  for_vectors(0, count, [&](std::int64_t i, auto lanes) {
    store_first(row + i, load_first(row + i, lanes) - load_first(unit + i, lanes) * part, lanes);
  });
}

void orthonormalise_matrix(float* x_NN, std::int64_t N) {
  for (int pass = 0; pass < kPasses; ++pass) {
    for (std::int64_t j = 0; j < N; ++j) {
      normalise(x_NN + j * N, j, N);
      for (std::int64_t i = j + 1; i < N; ++i) take_away(x_NN + j * N, x_NN + i * N, N);
    }
  }
}

}  // namespace

void orthonormalise(const tensor::Stream& stream, const Orthonormalise& args) {
  const std::int64_t N = args.x_BNN.size(1);
  auto* const x_BNN = args.x_BNN.data<float>();
  stream.pool().run(static_cast<std::size_t>(args.x_BNN.size(0)), [&](std::size_t matrix, std::size_t) {
    orthonormalise_matrix(x_BNN + static_cast<std::int64_t>(matrix) * N * N, N);
  });
}

}  // namespace plenum::kernels::cpu
