#pragma once

namespace plenum::kernels::cuda {

// GELU as cuBLASLt's epilogue has it: x Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2 replaced by the
// logistic function of x (a + b x^2), which is the form by tanh with both sides of 1 + tanh divided out. Next
// to rounding to bf16 the difference vanishes: docs/decisions/cuda.md. Every GELU of the GPU is this one, so
// that derivatives belong to what was computed.

inline constexpr float kGeluSlope = 1.5957691216F;   ///< a = 2 sqrt(2 / pi)
inline constexpr float kGeluCubic = 0.07135481627F;  ///< b = 0.044715 a

/// 1 / (1 + exp(-x (a + b x^2))), with a small relative error far into the left tail too. In as few
/// instructions as there are, for epilogues: without the steps by which the compiler keeps subnormal numbers,
/// of which none can change the sum with 1.
__device__ inline float gelu_gate(float x, float square) {
  constexpr float kLog2E = 1.4426950409F;
  float power;
  float gate;
  asm("ex2.approx.ftz.f32 %0, %1;"
      : "=f"(power)
      : "f"(x * fmaf(-kLog2E * kGeluCubic, square, -kLog2E * kGeluSlope)));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(gate) : "f"(1.0F + power));
  return gate;
}

__device__ inline float gelu(float x) {
  return x * gelu_gate(x, x * x);
}

struct GeluWithDerivative {
  float value;
  float derivative;
};
__device__ inline GeluWithDerivative gelu_with_derivative(float x) {
  const float square = x * x;
  const float gate = gelu_gate(x, square);
  const float value = x * gate;
  const float slope = fmaf(3 * kGeluCubic, square, kGeluSlope);
  return {value, fmaf(value * slope, 1.0F - gate, gate)};
}

__device__ inline float gelu_derivative(float x) {
  return gelu_with_derivative(x).derivative;
}

}  // namespace plenum::kernels::cuda
