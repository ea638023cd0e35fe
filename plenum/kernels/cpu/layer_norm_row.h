#pragma once

#include <cmath>
#include <cstdint>

#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {

// Layer norm of one row of D elements, which stays in the first-level cache between the passes over it. Sums
// are taken lane by lane and folded in a fixed order. See docs/math/layer_norm.md.

struct RowMoments {
  float mean = 0;
  float inverse_deviation = 0;  ///< 1 / sqrt(var + epsilon)
};

/// Mean and variance in two passes: the sum of squares of differences loses nothing to cancellation.
inline RowMoments row_moments(const float* z, std::int64_t width, float epsilon) {
  Vec sums = {};
  for_vectors(0, width, [&](std::int64_t i, auto n) { sums += load_first(z + i, n); });
  const float mean = sum(sums) / static_cast<float>(width);
  Vec squares = {};
  for_vectors(0, width, [&](std::int64_t i, auto n) {
    const Vec difference = first_lanes(load_first(z + i, n) - mean, n);
    squares += difference * difference;
  });
  const float variance = sum(squares) / static_cast<float>(width);
  return {.mean = mean, .inverse_deviation = 1.0F / std::sqrt(variance + epsilon)};
}

/// Computes y = gamma zhat + beta. y may be z.
inline void normalise_row(const float* z, const RowMoments& moments, const float* gamma, const float* beta,
                          float* y, std::int64_t width) {
  for_vectors(0, width, [&](std::int64_t i, auto n) {
    const Vec zhat = (load_first(z + i, n) - moments.mean) * moments.inverse_deviation;
    store_first(y + i, load_first(gamma + i, n) * zhat + load_first(beta + i, n), n);
  });
}

/// Computes dz from dy, and adds dy zhat to dgamma and dy to dbeta. dz may be dy.
inline void layer_norm_row_backward(const float* dy, const float* z, const RowMoments& moments,
                                    const float* gamma, float* dz, float* dgamma, float* dbeta,
                                    std::int64_t width) {
  Vec sum_g = {};
  Vec sum_g_zhat = {};
  for_vectors(0, width, [&](std::int64_t i, auto n) {
    const Vec dy_i = load_first(dy + i, n);
    const Vec dy_zhat = dy_i * ((load_first(z + i, n) - moments.mean) * moments.inverse_deviation);
    const Vec gamma_i = load_first(gamma + i, n);
    sum_g += gamma_i * dy_i;
    sum_g_zhat += gamma_i * dy_zhat;
    store_first(dgamma + i, load_first(dgamma + i, n) + dy_zhat, n);
    store_first(dbeta + i, load_first(dbeta + i, n) + dy_i, n);
  });
  const float mean_g = sum(sum_g) / static_cast<float>(width);
  const float mean_g_zhat = sum(sum_g_zhat) / static_cast<float>(width);
  for_vectors(0, width, [&](std::int64_t i, auto n) {
    const Vec zhat = (load_first(z + i, n) - moments.mean) * moments.inverse_deviation;
    const Vec g = load_first(gamma + i, n) * load_first(dy + i, n);
    store_first(dz + i, (g - mean_g - zhat * mean_g_zhat) * moments.inverse_deviation, n);
  });
}

}  // namespace plenum::kernels::cpu
