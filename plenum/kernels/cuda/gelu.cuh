#pragma once

namespace plenum::kernels::cuda {

/// Of the standard normal distribution.
struct Normal {
  float density;       ///< phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
  float distribution;  ///< Phi(x) = (1 + erf(x / sqrt 2)) / 2
};

// Relative errors below 2^-13, a sixteenth of what rounding to bf16 adds, far into the left tail too. erff
// would take three times the instructions, more than there is time for at memory's speed, and lose the tail.
__device__ inline Normal normal(float x) {
  const float a = fabsf(x);
  const float e = exp2f(a * a * -0.72134752F);  // exp(-a^2 / 2)
  // Phi(-a) = exp(-a^2 / 2) t p(t), t = 1 / (1 + a / 4); p is the polynomial of least relative error (6e-5)
  // for 0 <= a <= 14.6, where exp(-a^2 / 2) vanishes.
  const float t = __fdividef(1.0F, fmaf(a, 0.25F, 1.0F));
  float p = fmaf(t, 0.239965893F, -0.0999356985F);
  p = fmaf(p, t, 0.177024888F);
  p = fmaf(p, t, 0.0817157539F);
  p = fmaf(p, t, 0.101200256F);
  const float tail = e * (p * t);
  return {.density = e * 0.39894228F, .distribution = x < 0.0F ? tail : 1.0F - tail};
}

__device__ inline float gelu(float x) {
  return x * normal(x).distribution;
}

__device__ inline float gelu_derivative(float x) {
  const Normal at = normal(x);
  return fmaf(x, at.density, at.distribution);
}

}  // namespace plenum::kernels::cuda
