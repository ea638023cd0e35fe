#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

namespace plenum::kernels::cuda {

// The two products of an MLP that meet its GELU, by wgmma, for Hopper: what belongs to the GELU runs under
// the product of the next tile. n and k are multiples of 64; everything is row-major and 16-byte aligned. The
// bytes depend on the shape alone.

/// y [m, n] = x [m, k] w [n, k]^T + bias [n], and gelu(y).
struct GeluForwardProduct {
  std::int64_t m, n, k;
  const __nv_bfloat16* x;
  const __nv_bfloat16* w;
  const __nv_bfloat16* bias;
  __nv_bfloat16* y;
  __nv_bfloat16* gelu;
};
cudaError_t linear_gelu_forward_sm90(const GeluForwardProduct& args, cudaStream_t stream);

/// How many rows of du are summed before the sums are written.
inline constexpr std::int64_t kRowsOfGeluGradientSums = 128;

/// du [m, n] = (dy [m, k] w [k, n]) * gelu'(u [m, n]), element by element.
struct GeluGradientProduct {
  std::int64_t m, n, k;
  const __nv_bfloat16* dy;
  const __nv_bfloat16* w;
  const __nv_bfloat16* u;
  __nv_bfloat16* du;
  float* sums;  ///< [m / kRowsOfGeluGradientSums rounded up, n]: of columns, before rounding; may be null
};
cudaError_t linear_gelu_gradient_sm90(const GeluGradientProduct& args, cudaStream_t stream);

}  // namespace plenum::kernels::cuda
