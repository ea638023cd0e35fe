#include "plenum/kernels/cuda/tensor_map.h"

namespace plenum::kernels::cuda {

cudaError_t make_tensor_map(const __nv_bfloat16* matrix, std::int64_t num_rows, std::int64_t num_columns,
                            CUtensorMap& map) {
  // The driver is asked for its function by name: the program is not linked with it and starts without it.
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
  if (error != cudaSuccess) return error;
  if (found != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;

  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(num_columns), static_cast<cuuint64_t>(num_rows)};
  const cuuint64_t row_bytes[1] = {static_cast<cuuint64_t>(num_columns) * sizeof(__nv_bfloat16)};
  const cuuint32_t box[2] = {64, 64};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<__nv_bfloat16*>(matrix), sizes, row_bytes, box,
      steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace plenum::kernels::cuda
