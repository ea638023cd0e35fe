#pragma once

#include <cstdint>

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

namespace plenum::kernels::cuda {

/// Describes a matrix of bf16 with contiguous rows for the copy engine, which then copies boxes of 64 x 64 to
/// shared memory in the layout of wgmma.cuh. The base is 16-byte aligned, num_columns a multiple of 8.
cudaError_t make_tensor_map(const __nv_bfloat16* matrix, std::int64_t num_rows, std::int64_t num_columns,
                            CUtensorMap& map);

}  // namespace plenum::kernels::cuda
