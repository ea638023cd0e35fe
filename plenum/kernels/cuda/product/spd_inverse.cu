#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/product/float_matmul.h"
#include "plenum/kernels/cuda/product/spd_inverse.h"
#include "plenum/tensor/cuda_check.h"

// N rows, P columns of a panel. Only the lower half of the matrix is kept right until the last step.

namespace plenum::kernels::cuda {
namespace {

constexpr int kPanel = static_cast<int>(kInversePanel);
constexpr int kThreads = 256;
constexpr int kBlockThreads = 1024;

/// A panel's place in the matrix.
struct Panel {
  std::int64_t begin;
  int width;
};

__device__ bool has_failed(const double* state_C) {
  return state_C[index_of(InverseState::HasFailed)] != 0;
}

/// The columns as the lower half has them, above the diagonal block its row transposed; zero in the block's
/// own rows and in columns that the last panel lacks.
__global__ void copy_panel(const float* __restrict__ matrix_NN, std::int64_t size, Panel panel,
                           float* __restrict__ panel_NP) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const int j = static_cast<int>(threadIdx.x);
  if (i >= size) return;
  float value = 0;
  if (j < panel.width) {
    if (i < panel.begin) value = matrix_NN[(panel.begin + j) * size + i];
    if (i >= panel.begin + panel.width) value = matrix_NN[i * size + panel.begin + j];
  }
  panel_NP[i * kPanel + j] = value;
}

/// Inverts the diagonal block by sweeping its columns one by one, in double precision: the pivots are those
/// of its Cholesky factorisation, squared. One block of threads. Writes it in fp32 to `inverse_PP`, zero
/// behind the width of the last panel, and zero everywhere where the inversion has failed.
__global__ void __launch_bounds__(kBlockThreads)
    invert_block(const float* __restrict__ matrix_NN, std::int64_t size, Panel panel,
                 InverseState least_pivot, double* __restrict__ state_C, float* __restrict__ inverse_PP) {
  __shared__ double block[kPanel][kPanel + 1];
  __shared__ double column[kPanel];
  __shared__ double pivot;
  __shared__ bool is_failed;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) is_failed = has_failed(state_C);
  for (int e = thread; e < kPanel * kPanel; e += kBlockThreads) {
    const int i = e / kPanel;
    const int j = e % kPanel;
    const int row = max(i, j);
    const int col = min(i, j);
    block[i][j] = row < panel.width ? double{matrix_NN[(panel.begin + row) * size + panel.begin + col]} : 0.0;
  }
  const double least = state_C[index_of(least_pivot)];
  __syncthreads();
  for (int k = 0; k < panel.width; ++k) {
    if (thread < kPanel) column[thread] = block[thread][k];
    if (thread == 0) {
      pivot = block[k][k];
      if (!(pivot >= least && pivot > 0 && isfinite(pivot))) is_failed = true;
    }
    __syncthreads();
    if (is_failed) break;
    for (int e = thread; e < kPanel * kPanel; e += kBlockThreads) {
      const int i = e / kPanel;
      const int j = e % kPanel;
      if (i == k || j == k) {
        block[i][j] = i == j ? -1 / pivot : column[i == k ? j : i] / pivot;
      } else {
        block[i][j] -= column[i] * column[j] / pivot;
      }
    }
    __syncthreads();
  }
  for (int e = thread; e < kPanel * kPanel; e += kBlockThreads) {
    const bool is_there = !is_failed && e / kPanel < panel.width && e % kPanel < panel.width;
    inverse_PP[e] = is_there ? static_cast<float>(-block[e / kPanel][e % kPanel]) : 0.0F;
  }
  if (thread == 0 && is_failed) state_C[index_of(InverseState::HasFailed)] = 1;
}

/// Puts the panel's new columns into the lower half.
__global__ void write_panel(const float* __restrict__ product_NP, const float* __restrict__ inverse_PP,
                            std::int64_t size, Panel panel, float* __restrict__ matrix_NN) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const int j = static_cast<int>(threadIdx.x);
  if (i >= size || j >= panel.width) return;
  if (i < panel.begin) {
    matrix_NN[(panel.begin + j) * size + i] = product_NP[i * kPanel + j];
  } else if (i < panel.begin + panel.width) {
    const auto row = static_cast<int>(i - panel.begin);
    if (j <= row) matrix_NN[i * size + panel.begin + j] = -inverse_PP[row * kPanel + j];
  } else {
    matrix_NN[i * size + panel.begin + j] = product_NP[i * kPanel + j];
  }
}

/// Of the negative inverse in the lower half makes the whole inverse. A thread takes an element of it and the
/// one that mirrors it.
__global__ void __launch_bounds__(kThreads)
    finish(float* __restrict__ matrix_NN, std::int64_t size, double* __restrict__ state_C) {
  const std::int64_t i = blockIdx.y;
  const std::int64_t j = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (j > i) return;
  const float value = -matrix_NN[i * size + j];
  matrix_NN[i * size + j] = value;
  matrix_NN[j * size + i] = value;
  if (!isfinite(value)) state_C[index_of(InverseState::HasFailed)] = 1;  // whoever writes, writes the same
}

/// One inversion's matrix and room.
class Sweep {
 public:
  Sweep(const tensor::Stream& stream, const InvertSpd& args)
      : stream_(stream),
        args_(args),
        size_(args.matrix_NN.size(0)),
        matrix_(args.matrix_NN.data<float>()),
        panel_(args.panels_2NP.data<float>()),
        product_(panel_ + size_ * kPanel),
        state_(args.state_C.data<double>()) {}

  void eliminate(std::int64_t panel_index) const {
    const Panel panel{.begin = panel_index * kPanel,
                      .width = static_cast<int>(min(std::int64_t{kPanel}, size_ - panel_index * kPanel))};
    const dim3 threads(kPanel, kThreads / kPanel);
    const auto blocks = static_cast<unsigned>((size_ + threads.y - 1) / threads.y);
    // The inverted block lies behind the library's workspace.
    auto* const inverse_PP =
        reinterpret_cast<float*>(stream_.scratch().data() + workspace::kMatmulWorkspaceBytes);
    copy_panel<<<blocks, threads, 0, queue()>>>(matrix_, size_, panel, panel_);
    invert_block<<<1, kBlockThreads, 0, queue()>>>(matrix_, size_, panel, args_.least_pivot, state_,
                                                   inverse_PP);
    tensor::check_cuda(cudaGetLastError(), "invert a block");
    float_matmul(stream_, {.m = size_,
                           .n = kPanel,
                           .k = kPanel,
                           .a = {.data = panel_, .stride = kPanel},
                           .b = {.data = inverse_PP, .stride = kPanel},
                           .c = product_,
                           .c_stride = kPanel});
    float_matmul(stream_, {.m = size_,
                           .n = size_,
                           .k = kPanel,
                           .a = {.data = product_, .stride = kPanel},
                           .b = {.data = panel_, .stride = kPanel, .is_transposed = true},
                           .c = matrix_,
                           .c_stride = size_,
                           .accumulate = Accumulate::Yes,
                           .alpha = -1});
    write_panel<<<blocks, threads, 0, queue()>>>(product_, inverse_PP, size_, panel, matrix_);
    tensor::check_cuda(cudaGetLastError(), "eliminate a panel");
  }

  void finish_inverse() const {
    const dim3 blocks(static_cast<unsigned>((size_ + kThreads - 1) / kThreads), static_cast<unsigned>(size_));
    finish<<<blocks, kThreads, 0, queue()>>>(matrix_, size_, state_);
    tensor::check_cuda(cudaGetLastError(), "finish an inverse");
  }

 private:
  cudaStream_t queue() const { return stream_.cuda().handle(); }

  const tensor::Stream& stream_;
  const InvertSpd& args_;
  std::int64_t size_;
  float* matrix_;
  float* panel_;
  float* product_;
  double* state_;
};

}  // namespace

void invert_spd(const tensor::Stream& stream, const InvertSpd& args) {
  check_scratch(stream, workspace::kronecker_scratch_bytes(tensor::Device::Cuda, 0));
  const Sweep sweep(stream, args);
  const std::int64_t num_panels = num_inverse_steps(args.matrix_NN.size(0)) - 1;
  for (std::int64_t step = args.first_step; step < args.end_step; ++step) {
    if (step < num_panels) {
      sweep.eliminate(step);
    } else if (args.matrix_NN.size(0) > 0) {
      sweep.finish_inverse();
    }
  }
}

}  // namespace plenum::kernels::cuda
