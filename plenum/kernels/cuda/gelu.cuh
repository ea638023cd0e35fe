#pragma once

namespace plenum::kernels::cuda {

// GELU as cuBLASLt's epilogue has it: x Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2 replaced by the
// logistic function of x (a + b x^2), which is the form by tanh with both sides of 1 + tanh divided out. Next
// to rounding to bf16 the difference vanishes: docs/decisions/cuda.md. Every GELU of the GPU is this one, so
// that derivatives belong to what was computed.

inline constexpr float kGeluSlope = 1.5957691216F;   ///< a = 2 sqrt(2 / pi)
inline constexpr float kGeluCubic = 0.07135481627F;  ///< b = 0.044715 a

/// 1 / (1 + exp(-x (a + b x^2))), with a small relative error far into the left tail too.
__device__ inline float gelu_gate(float x) {
  return __fdividef(1.0F, 1.0F + __expf(-x * fmaf(kGeluCubic, x * x, kGeluSlope)));
}

__device__ inline float gelu(float x) {
  return x * gelu_gate(x);
}

__device__ inline float gelu_derivative(float x) {
  const float gate = gelu_gate(x);
  const float slope = fmaf(3 * kGeluCubic, x * x, kGeluSlope);
  return fmaf(x * slope, gate * (1.0F - gate), gate);
}

}  // namespace plenum::kernels::cuda
