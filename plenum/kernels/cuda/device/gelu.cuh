#pragma once

namespace plenum::kernels::cuda {

// The exact GELU, x Phi(x) with the normal distribution's Phi, as docs/math/activations.md has it: within
// 2.8e-5 of itself for |x| <= 13, a hundredth of what rounding to bf16 adds. Every GELU of the GPU is this
// one, so that derivatives belong to what was computed.

struct NormalDistribution {
  float scaled_density;  ///< exp(-x^2 / 2): the density times sqrt(2 pi)
  float share_below;     ///< Phi(x)
};

/// In as few instructions as there are, for epilogues: without the steps by which the compiler keeps
/// subnormal numbers. The tail Phi(-|x|) is exp(-x^2 / 2) times a polynomial in 1 / (1 + p |x|).
__device__ inline NormalDistribution normal_distribution(float x) {
  constexpr float kHalfLog2E = 0.72134752044F;
  float density;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(density) : "f"(-kHalfLog2E * x * x));
  float t;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(fmaf(0.376F, fabsf(x), 1.0F)));
  float ratio = fmaf(-0.0911223476F, t, 0.199329641F);
  ratio = fmaf(ratio, t, 0.0842613277F);
  ratio = fmaf(ratio, t, 0.158055021F);
  ratio = fmaf(ratio, t, 0.149462592F);
  const float tail = density * (ratio * t);
  return {density, x < 0 ? tail : 1.0F - tail};
}

__device__ inline float gelu(float x) {
  return x * normal_distribution(x).share_below;
}

struct GeluWithDerivative {
  float value;
  float derivative;
};
__device__ inline GeluWithDerivative gelu_with_derivative(float x) {
  constexpr float kInverseRootOf2Pi = 0.3989422804F;
  const NormalDistribution normal = normal_distribution(x);
  return {x * normal.share_below, fmaf(x * normal.scaled_density, kInverseRootOf2Pi, normal.share_below)};
}

__device__ inline float gelu_derivative(float x) {
  return gelu_with_derivative(x).derivative;
}

}  // namespace plenum::kernels::cuda
