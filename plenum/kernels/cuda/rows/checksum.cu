#include <algorithm>

#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/rows/checksum.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 2048;

/// Scatters the bits of a number (the end of splitmix64).
__device__ std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBU;
  return bits ^ bits >> 31;
}

__global__ void __launch_bounds__(kThreads)
    add_checksum_kernel(const std::uint16_t* matrix, std::int64_t num_rows, std::int64_t row_units,
                        std::int64_t stride_units, unsigned long long* sum) {
  unsigned long long mine = 0;
  for (std::int64_t row = blockIdx.x; row < num_rows; row += gridDim.x) {
    for (std::int64_t unit = threadIdx.x; unit < row_units; unit += kThreads) {
      const auto place = static_cast<std::uint64_t>(row * row_units + unit);
      mine += mixed(place << 16 | matrix[row * stride_units + unit]);
    }
  }
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    mine += __shfl_xor_sync(kAllLanes, mine, distance);
  }
  if (threadIdx.x % kWarpSize == 0) atomicAdd(sum, mine);
}

}  // namespace

void add_checksum(const tensor::CudaStream& queue, const void* matrix, std::int64_t num_rows,
                  std::size_t row_bytes, std::size_t stride_bytes, std::uint64_t* sum) {
  static_assert(sizeof(std::uint64_t) == sizeof(unsigned long long));
  const auto num_blocks = static_cast<unsigned>(std::min(num_rows, kMaxBlocks));
  add_checksum_kernel<<<num_blocks, kThreads, 0, queue.handle()>>>(
      static_cast<const std::uint16_t*>(matrix), num_rows,
      static_cast<std::int64_t>(row_bytes / sizeof(std::uint16_t)),
      static_cast<std::int64_t>(stride_bytes / sizeof(std::uint16_t)),
      reinterpret_cast<unsigned long long*>(sum));
  tensor::check_cuda(cudaGetLastError(), "add up a checksum");
}

}  // namespace plenum::kernels::cuda
