#include "plenum/kernels/cuda/device/tensor_map.h"

namespace plenum::kernels::cuda {
namespace {

constexpr cuuint32_t kBoxColumns = 64;

/// The driver's function that describes tensors.
struct TensorMapEncoder {
  cudaError_t error = cudaSuccess;
  decltype(&cuTensorMapEncodeTiled) encode = nullptr;
};

/// Asks the driver for it by name: the program is not linked with the driver and starts without it.
TensorMapEncoder find_encoder() {
  constexpr const char* kName = "cuTensorMapEncodeTiled";
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(kName, &entry, 12000, cudaEnableDefault, &found);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(kName, &entry, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess) return {.error = error};
  if (found != cudaDriverEntryPointSuccess) return {.error = cudaErrorNotSupported};
  return {.encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)};
}

const TensorMapEncoder& tensor_map_encoder() {
  static const TensorMapEncoder encoder = find_encoder();
  return encoder;
}

/// Boxes in the 128-byte swizzle of a tensor of kDims dimensions, of which the first is contiguous.
template <std::size_t kDims>
cudaError_t encode(void* origin, const cuuint64_t (&sizes)[kDims], const cuuint64_t (&strides)[kDims - 1],
                   const cuuint32_t (&box)[kDims], CUtensorMap& map) {
  const TensorMapEncoder& encoder = tensor_map_encoder();
  if (encoder.error != cudaSuccess) return encoder.error;

  cuuint32_t steps[kDims];
  for (cuuint32_t& step : steps) step = 1;
  const CUresult result =
      encoder.encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, kDims, origin, sizes, strides, box, steps,
                     CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                     CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

cuuint64_t bytes_of_row(std::int64_t num_columns) {
  return static_cast<cuuint64_t>(num_columns) * sizeof(__nv_bfloat16);
}

}  // namespace

cudaError_t make_tensor_map(const __nv_bfloat16* matrix, std::int64_t num_rows, std::int64_t num_columns,
                            CUtensorMap& map) {
  const cuuint64_t row_bytes = bytes_of_row(num_columns);
  const cuuint64_t sizes[3] = {static_cast<cuuint64_t>(num_columns), kBoxRows,
                               static_cast<cuuint64_t>(num_rows) + 1};
  const cuuint64_t strides[2] = {row_bytes, row_bytes};
  const cuuint32_t box[3] = {kBoxColumns, kBoxRows, 1};
  // Where (0, 0) is: before the matrix, where no box begins.
  void* const origin =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(matrix) - kBoxRows * row_bytes);
  return encode(origin, sizes, strides, box, map);
}

cudaError_t make_box_map(const __nv_bfloat16* matrix, std::int64_t num_rows, std::int64_t num_columns,
                         int box_rows, CUtensorMap& map) {
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(num_columns), static_cast<cuuint64_t>(num_rows)};
  const cuuint64_t strides[1] = {bytes_of_row(num_columns)};
  const cuuint32_t box[2] = {kBoxColumns, static_cast<cuuint32_t>(box_rows)};
  return encode(const_cast<__nv_bfloat16*>(matrix), sizes, strides, box, map);
}

}  // namespace plenum::kernels::cuda
