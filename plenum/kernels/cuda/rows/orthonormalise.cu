#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/rows/orthonormalise.h"
#include "plenum/tensor/cuda_check.h"

// B matrices of N rows and columns, a block for each: rows that were not reached yet are spread over its
// warps. Matrices up to some thousand stay in the second-level cache, whose speed is what bounds this.

namespace plenum::kernels::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kPasses = 2;

/// Leaves row j, of length 1, in its place and in shared memory.
__device__ void normalise(float* row, std::int64_t row_index, std::int64_t N, float* unit,
                          BlockReductionOf<float>& shared) {
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < N; i += kThreads) squares += row[i] * row[i];
  const float length = sqrtf(block_sum(squares, shared));
  const bool is_lost = !(length > 0) || !isfinite(length);
  for (std::int64_t i = threadIdx.x; i < N; i += kThreads) {
    const float value = is_lost ? (i == row_index ? 1.0F : 0.0F) : row[i] / length;
    row[i] = value;
    unit[i] = value;
  }
  __syncthreads();
}

/// By the lanes of a warp.
__device__ void take_away(const float* unit, float* row, std::int64_t N, int lane) {
  float part = 0;
  for (std::int64_t i = lane; i < N; i += kWarpSize) part += unit[i] * row[i];
  part = warp_sum(part);
  for (std::int64_t i = lane; i < N; i += kWarpSize) row[i] -= unit[i] * part;
}

__global__ void __launch_bounds__(kThreads) orthonormalise_matrix(float* x_BNN, std::int64_t N) {
  extern __shared__ float unit[];  // N
  __shared__ BlockReductionOf<float> shared;
  float* const x_NN = x_BNN + std::int64_t{blockIdx.x} * N * N;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  for (int pass = 0; pass < kPasses; ++pass) {
    for (std::int64_t j = 0; j < N; ++j) {
      normalise(x_NN + j * N, j, N, unit, shared);
      for (std::int64_t i = j + 1 + warp; i < N; i += kThreads / kWarpSize)
        take_away(unit, x_NN + i * N, N, lane);
      __syncthreads();
    }
  }
}

}  // namespace

void orthonormalise(const tensor::Stream& stream, const Orthonormalise& args) {
  const std::int64_t N = args.x_BNN.size(1);
  constexpr std::int64_t kMostColumns = 8192;  // of which a row finds room in shared memory everywhere
  base::check(N <= kMostColumns, "a block of the GPU orthonormalises up to {} rows: {}", kMostColumns, N);
  const auto num_matrices = static_cast<unsigned>(args.x_BNN.size(0));
  orthonormalise_matrix<<<num_matrices, kThreads, static_cast<std::size_t>(N) * sizeof(float),
                          stream.cuda().handle()>>>(args.x_BNN.data<float>(), N);
  tensor::check_cuda(cudaGetLastError(), "orthonormalise matrices");
}

}  // namespace plenum::kernels::cuda
