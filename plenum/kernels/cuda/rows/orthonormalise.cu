#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/rows/orthonormalise.h"
#include "plenum/tensor/cuda_check.h"

// B matrices of N rows and columns. A panel of rows at a time is made orthonormal, by a block for each
// matrix, and taken away from all rows behind it, by as many blocks as there is room for. Every sum is taken
// by one warp, in an order that depends on N alone.

namespace plenum::kernels::cuda {
namespace {

constexpr int kPanel = 32;  ///< rows: a warp of the block has each
constexpr int kPanelThreads = kPanel * kWarpSize;
constexpr int kAwayThreads = 256;
constexpr int kRowsOfWarp = 2;
constexpr int kRowsOfBlock = kAwayThreads / kWarpSize * kRowsOfWarp;
constexpr int kPasses = 2;

/// A row in the registers of a warp: lane l has every 32nd element from the l-th on, zero behind the end.
/// Other rows are as long as the registers, with zeros behind their end.
template <int kOwn>
class RowInRegisters {
 public:
  static constexpr bool kLiesInMemory = false;
  static constexpr int kLength = kOwn * kWarpSize;

  __device__ RowInRegisters(float* row, int N, int lane) : row_(row), N_(N), lane_(lane) {
    for_own([&](float& value, int i) { value = i < N_ ? row_[i] : 0.0F; });
  }
  __device__ float dot(const float* other) {
    float part = 0;
    for_own([&](float value, int i) { part += value * other[i]; });
    return warp_sum(part);
  }
  __device__ float squares() {
    float part = 0;
    for_own([&](float value, int) { part += value * value; });
    return warp_sum(part);
  }
  __device__ void take_away(const float* other, float factor) {
    for_own([&](float& value, int i) { value -= other[i] * factor; });
  }
  __device__ void scale(float factor) {
    for_own([&](float& value, int) { value *= factor; });
  }
  __device__ void become_unit(int place) {
    for_own([&](float& value, int i) { value = i == place ? 1.0F : 0.0F; });
  }
  __device__ void store(float* to) {
    for_own([&](float value, int i) { to[i] = value; });
  }
  __device__ void write_back() {
    // As if it were another: else the compiler keeps all places since they were read, and has no registers
    // left.
    asm volatile("" : "+r"(lane_));
    for_own([&](float value, int i) {
      if (i < N_) row_[i] = value;
    });
  }

 private:
  template <typename Body>
  __device__ void for_own(Body body) {
#pragma unroll
    for (int own = 0; own < kOwn; ++own) body(values_[own], own * kWarpSize + lane_);
  }

  float* row_;
  int N_, lane_;
  float values_[kOwn];
};

/// A row of any length, which stays where it lies, as do others.
class RowInMemory {
 public:
  static constexpr bool kLiesInMemory = true;
  static constexpr int kLength = 0;

  __device__ RowInMemory(float* row, int N, int lane) : row_(row), N_(N), lane_(lane) {}
  __device__ float dot(const float* other) {
    float part = 0;
    for (int i = lane_; i < N_; i += kWarpSize) part += row_[i] * other[i];
    return warp_sum(part);
  }
  __device__ float squares() { return dot(row_); }
  __device__ void take_away(const float* other, float factor) {
    for (int i = lane_; i < N_; i += kWarpSize) row_[i] -= other[i] * factor;
  }
  __device__ void scale(float factor) {
    for (int i = lane_; i < N_; i += kWarpSize) row_[i] *= factor;
  }
  __device__ void become_unit(int place) {
    for (int i = lane_; i < N_; i += kWarpSize) row_[i] = i == place ? 1.0F : 0.0F;
  }
  __device__ void store(float*) {}
  __device__ void write_back() {}

 private:
  float* row_;
  int N_, lane_;
};

/// Makes the rows of a panel orthonormal by modified Gram-Schmidt, so many times over: nearly parallel rows
/// are orthogonal only the second time, and what is taken away from others must be.
template <typename Row>
__global__ void __launch_bounds__(kPanelThreads)
    orthonormalise_panel(float* x_BNN, int N, int first_row, int num_times) {
  extern __shared__ float units[];  // two in turn, unless they are read where they lie
  float* const x_NN = x_BNN + std::int64_t{blockIdx.x} * N * N;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int num_rows = min(kPanel, N - first_row);
  // Warps without a row of their own meet the others, and leave the last row alone.
  const int own = min(warp, num_rows - 1);
  Row row(x_NN + std::int64_t{first_row + own} * N, N, lane);
  for (int time = 0; time < num_times; ++time) {
    for (int j = 0; j < num_rows; ++j) {
      float* const unit = Row::kLiesInMemory ? x_NN + std::int64_t{first_row + j} * N
                                             : units + (time * num_rows + j) % 2 * Row::kLength;
      if (warp == j) {
        const float inverse = 1 / sqrtf(row.squares());
        if (inverse > 0 && isfinite(inverse)) {
          row.scale(inverse);
        } else {
          row.become_unit(first_row + j);
        }
        row.store(unit);
      }
      __syncthreads();
      if (warp <= j || warp >= num_rows) continue;
      const float part = row.dot(unit);
      __syncwarp();  // the unit is read once more: registers have no room for it
      row.take_away(unit, part);
    }
  }
  if (warp < num_rows) row.write_back();
}

/// Takes the rows of a panel away from those behind it: X - (X U^T) U, of kRowsOfWarp rows for each warp.
__global__ void __launch_bounds__(kAwayThreads) take_panel_away(float* x_BNN, int N, int first_row) {
  float* const x_NN = x_BNN + std::int64_t{blockIdx.y} * N * N;
  const float* const units = x_NN + std::int64_t{first_row} * N;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int begin = first_row + kPanel + static_cast<int>(blockIdx.x) * kRowsOfBlock + warp * kRowsOfWarp;
  if (begin >= N) return;
  static_assert(kRowsOfWarp == 2);
  const bool has_second = begin + 1 < N;
  float* const first = x_NN + std::int64_t{begin} * N;
  float* const second = has_second ? first + N : first;
  float of_first[kPanel] = {};
  float of_second[kPanel] = {};
  for (int i = lane; i < N; i += kWarpSize) {
    const float a = first[i];
    const float b = second[i];
#pragma unroll
    for (int u = 0; u < kPanel; ++u) {
      const float unit = units[u * N + i];
      of_first[u] += unit * a;
      of_second[u] += unit * b;
    }
  }
#pragma unroll
  for (int u = 0; u < kPanel; ++u) {
    of_first[u] = warp_sum(of_first[u]);
    of_second[u] = warp_sum(of_second[u]);
  }
  for (int i = lane; i < N; i += kWarpSize) {
    float a = first[i];
    float b = second[i];
#pragma unroll
    for (int u = 0; u < kPanel; ++u) {
      const float unit = units[u * N + i];
      a -= unit * of_first[u];
      b -= unit * of_second[u];
    }
    first[i] = a;
    if (has_second) second[i] = b;
  }
}

/// How panels of a size are made orthonormal.
struct PanelKernel {
  void (*run)(float*, int, int, int);
  std::size_t shared_bytes;
};
template <typename Row>
PanelKernel panel_kernel_of() {
  return {orthonormalise_panel<Row>, 2 * Row::kLength * sizeof(float)};
}
PanelKernel panel_kernel(int N) {
  using ShortRow = RowInRegisters<8>;
  using LongRow = RowInRegisters<32>;  // more would not find room in the registers of so many threads
  if (N <= ShortRow::kLength) return panel_kernel_of<ShortRow>();
  if (N <= LongRow::kLength) return panel_kernel_of<LongRow>();
  return panel_kernel_of<RowInMemory>();
}

}  // namespace

void orthonormalise(const tensor::Stream& stream, const Orthonormalise& args) {
  const int N = static_cast<int>(args.x_BNN.size(1));
  const auto num_matrices = static_cast<unsigned>(args.x_BNN.size(0));
  float* const x_BNN = args.x_BNN.data<float>();
  cudaStream_t queue = stream.cuda().handle();
  const PanelKernel kernel = panel_kernel(N);
  for (int pass = 0; pass < kPasses; ++pass) {
    const int num_times = pass == 0 ? 2 : 1;
    for (int first_row = 0; first_row < N; first_row += kPanel) {
      kernel.run<<<num_matrices, kPanelThreads, kernel.shared_bytes, queue>>>(x_BNN, N, first_row, num_times);
      tensor::check_cuda(cudaGetLastError(), "orthonormalise a panel");
      const int num_behind = N - first_row - kPanel;
      if (num_behind <= 0) continue;
      const dim3 blocks(static_cast<unsigned>((num_behind + kRowsOfBlock - 1) / kRowsOfBlock), num_matrices);
      take_panel_away<<<blocks, kAwayThreads, 0, queue>>>(x_BNN, N, first_row);
      tensor::check_cuda(cudaGetLastError(), "take a panel away");
    }
  }
}

}  // namespace plenum::kernels::cuda
