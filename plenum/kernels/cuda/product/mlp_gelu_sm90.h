#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "plenum/kernels/cuda/product/mlp_gelu.h"

namespace plenum::kernels::cuda {

// The two products of an MLP that meet its GELU, by wgmma, for Hopper: what belongs to the GELU runs under
// the product of the next tile. n and k are multiples of 64; everything is row-major and 16-byte aligned. The
// bytes depend on the shape alone.

/// gelu(u) and, where it is wanted, gelu'(u), [m, n], of u = x [m, k] w [n, k]^T + bias [n].
struct GeluForwardProduct {
  std::int64_t m, n, k;
  const __nv_bfloat16* x;
  const __nv_bfloat16* w;
  const __nv_bfloat16* bias;
  __nv_bfloat16* gelu;
  __nv_bfloat16* derivative;  ///< or null
};
cudaError_t mlp_gelu_forward_sm90(const GeluForwardProduct& args, cudaStream_t stream);

/// du [m, n] = (dy [m, k] w [k, n]) * derivative [m, n], element by element.
struct GeluBackwardProduct {
  std::int64_t m, n, k;
  const __nv_bfloat16* dy;
  const __nv_bfloat16* w;
  const __nv_bfloat16* derivative;
  __nv_bfloat16* du;
  float* sums;  ///< [m / kRowsOfGeluSums rounded up, n]: of columns, before rounding
};
cudaError_t mlp_gelu_backward_sm90(const GeluBackwardProduct& args, cudaStream_t stream);

}  // namespace plenum::kernels::cuda
