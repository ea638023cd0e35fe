#include "plenum/kernels/cuda/tensor_map.h"

namespace plenum::kernels::cuda {
namespace {
constexpr cuuint32_t kBoxRows = 64;  // and columns
}  // namespace

cudaError_t make_tensor_map(const __nv_bfloat16* matrix, std::int64_t num_rows, std::int64_t num_columns,
                            CUtensorMap& map) {
  // The driver is asked for its function by name: the program is not linked with it and starts without it.
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
  if (error != cudaSuccess) return error;
  if (found != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;

  const auto row_bytes = static_cast<cuuint64_t>(num_columns) * sizeof(__nv_bfloat16);
  const cuuint64_t sizes[3] = {static_cast<cuuint64_t>(num_columns), kBoxRows,
                               static_cast<cuuint64_t>(num_rows) + 1};
  const cuuint64_t strides[2] = {row_bytes, row_bytes};
  const cuuint32_t box[3] = {kBoxRows, kBoxRows, 1};
  const cuuint32_t steps[3] = {1, 1, 1};
  // Where (0, 0) is: before the matrix, where no box begins.
  void* const origin =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(matrix) - kBoxRows * row_bytes);
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, origin, sizes, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace plenum::kernels::cuda
