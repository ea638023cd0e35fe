#include <algorithm>

#include "plenum/kernels/cuda/product/spd_inverse.h"
#include "plenum/tensor/cuda_check.h"

// N rows, P columns of a panel. Only the lower half of a matrix is kept right until the last step. A launch
// works on the same step of many matrices, of any sizes: blockIdx.y is the matrix. All sums of a matrix are
// taken by one block in an order that depends on its size alone.

namespace plenum::kernels::cuda {
namespace {

constexpr int kPanel = static_cast<int>(kInversePanel);
constexpr int kMatrices = static_cast<int>(workspace::kInversesAtOnce);

/// A matrix under way, and the room that it has: a panel and its product, [P, N] each, so that neighbouring
/// rows of the matrix lie side by side.
struct SweptMatrix {
  float* matrix_NN;
  float* panel_PN;
  float* product_PN;
  float* inverse_PP;
  double* state_C;
  int size;
  int least_pivot;  ///< index of its InverseState

  __device__ int width_of(int begin) const { return min(kPanel, size - begin); }
  __device__ float* row(int i) const { return matrix_NN + std::int64_t{i} * size; }
  /// Whether four neighbouring elements of a row can be moved at once.
  __device__ bool has_vectors() const {
    return size % 4 == 0 && reinterpret_cast<std::uintptr_t>(matrix_NN) % 16 == 0;
  }
};

/// As many as a kernel's arguments have room for.
struct SweptMatrices {
  SweptMatrix at[kMatrices];
};
static_assert(sizeof(SweptMatrices) <= 4096);

__device__ double* failed_of(const SweptMatrix& swept) {
  return swept.state_C + index_of(InverseState::HasFailed);
}

// --- the diagonal block ------------------------------------------------------------------------------------

constexpr int kBlockSide = 16;                          ///< threads along a side of a diagonal block
constexpr int kBlockThreads = kBlockSide * kBlockSide;  ///< each has every 16th row and column
constexpr int kOwn = kPanel / kBlockSide;

/// Inverts the diagonal block by sweeping its columns one by one, in double precision: the pivots are those
/// of its Cholesky factorisation, squared. A block of threads for each matrix, elements in registers; a
/// column at a time goes through shared memory. Writes it in fp32 to inverse_PP, zero behind the width of the
/// last panel, and zero everywhere where the inversion has failed.
__global__ void __launch_bounds__(kBlockThreads)
    invert_blocks(const __grid_constant__ SweptMatrices matrices, int begin) {
  const SweptMatrix& swept = matrices.at[blockIdx.x];
  if (begin >= swept.size) return;
  __shared__ double columns[2][kPanel];
  __shared__ bool had_failed;
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / kBlockSide;
  const int col = thread % kBlockSide;
  const int width = swept.width_of(begin);
  // Another matrix of the same state may fail meanwhile.
  if (thread == 0) had_failed = *static_cast<volatile double*>(failed_of(swept)) != 0;
  double block[kOwn][kOwn];
#pragma unroll
  for (int r = 0; r < kOwn; ++r) {
#pragma unroll
    for (int c = 0; c < kOwn; ++c) {
      const int high = max(row + r * kBlockSide, col + c * kBlockSide);
      const int low = min(row + r * kBlockSide, col + c * kBlockSide);
      block[r][c] = high < width ? double{swept.row(begin + high)[begin + low]} : (high == low ? 1.0 : 0.0);
    }
  }
  const double least = swept.state_C[swept.least_pivot];
  __syncthreads();
  bool is_failed = had_failed;
#pragma unroll
  for (int kc = 0; kc < kOwn; ++kc) {
    for (int kt = 0; kt < kBlockSide && !is_failed; ++kt) {
      const int k = kc * kBlockSide + kt;
      if (k >= width) break;
      // Nobody still reads this half: that was two columns ago, and all have met since.
      double* const column = columns[k % 2];
      if (col == kt) {
#pragma unroll
        for (int r = 0; r < kOwn; ++r) column[row + r * kBlockSide] = block[r][kc];
      }
      __syncthreads();
      const double pivot = column[k];
      is_failed = !(pivot >= least && pivot > 0 && isfinite(pivot));
      const double inverse = 1 / pivot;
      double of_row[kOwn];
      double of_col[kOwn];
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        of_row[i] = column[row + i * kBlockSide];
        of_col[i] = column[col + i * kBlockSide] * inverse;
      }
#pragma unroll
      for (int r = 0; r < kOwn; ++r) {
#pragma unroll
        for (int c = 0; c < kOwn; ++c) {
          const bool is_row = r == kc && row == kt;
          const bool is_col = c == kc && col == kt;
          const double swept_out = block[r][c] - of_row[r] * of_col[c];
          const double of_cross = is_row ? (is_col ? -inverse : of_col[c]) : of_row[r] * inverse;
          block[r][c] = is_row || is_col ? of_cross : swept_out;
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kOwn; ++r) {
#pragma unroll
    for (int c = 0; c < kOwn; ++c) {
      const int i = row + r * kBlockSide;
      const int j = col + c * kBlockSide;
      const bool is_there = !is_failed && i < width && j < width;
      swept.inverse_PP[i * kPanel + j] = is_there ? static_cast<float>(-block[r][c]) : 0.0F;
    }
  }
  if (thread == 0 && is_failed) *failed_of(swept) = 1;
}

// --- products of tiles -------------------------------------------------------------------------------------

constexpr int kTileThreads = 128;
constexpr int kTileRows = 8;     ///< of a tile's 64 rows that a thread has: 4 neighbours in each half
constexpr int kTileColumns = 4;  ///< of its 64 columns: neighbours
constexpr int kAcross = kPanel / kTileColumns;

/// A thread's place in a tile.
struct TilePlace {
  int column = static_cast<int>(threadIdx.x) % kAcross * kTileColumns;
  int first_row = static_cast<int>(threadIdx.x) / kAcross * 4;

  __device__ int row(int r) const { return first_row + (r < 4 ? r : r + kPanel / 2 - 4); }
};

/// sums = A^T B of tiles in shared memory, whose rows are what is summed over.
template <int kStrideA, int kStrideB>
__device__ void multiply_tiles(const float (*a)[kStrideA], const float (*b)[kStrideB], const TilePlace& place,
                               float (&sums)[kTileRows][kTileColumns]) {
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
#pragma unroll
    for (int c = 0; c < kTileColumns; ++c) sums[r][c] = 0;
  }
#pragma unroll 8
  for (int k = 0; k < kPanel; ++k) {
    const float4 low = *reinterpret_cast<const float4*>(&a[k][place.first_row]);
    const float4 high = *reinterpret_cast<const float4*>(&a[k][place.first_row + kPanel / 2]);
    const float4 right = *reinterpret_cast<const float4*>(&b[k][place.column]);
    const float left[kTileRows] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int r = 0; r < kTileRows; ++r) {
      sums[r][0] += left[r] * right.x;
      sums[r][1] += left[r] * right.y;
      sums[r][2] += left[r] * right.z;
      sums[r][3] += left[r] * right.w;
    }
  }
}

/// Takes out a panel, a tile of rows for each block: as the lower half has it, above the diagonal block its
/// row transposed, zero in columns that the last panel lacks. Multiplies it by the inverted block, and puts
/// the product, the panel's new columns, into the lower half; the diagonal block becomes minus its inverse.
__global__ void __launch_bounds__(kTileThreads)
    replace_panels(const __grid_constant__ SweptMatrices matrices, int begin) {
  constexpr int kPadded = kPanel + 4;  // rows are written across
  const SweptMatrix& swept = matrices.at[blockIdx.y];
  const int first_row = static_cast<int>(blockIdx.x) * kPanel;
  const int N = swept.size;
  if (begin >= N || first_row >= N) return;
  const int width = swept.width_of(begin);
  const int thread = static_cast<int>(threadIdx.x);
  if (first_row == begin) {
    for (int e = thread; e < kPanel * kPanel; e += kTileThreads) {
      const int i = e / kPanel;
      const int j = e % kPanel;
      if (i < width && j <= i) swept.row(begin + i)[begin + j] = -swept.inverse_PP[e];
    }
    return;
  }
  __shared__ alignas(16) float panel[kPanel][kPadded];
  __shared__ alignas(16) float inverse[kPanel][kPanel];
  const bool is_above = first_row < begin;
  for (int e = thread; e < kPanel * kPanel; e += kTileThreads) {
    const int slow = e / kPanel;
    const int fast = e % kPanel;
    inverse[slow][fast] = swept.inverse_PP[e];
    const int k = is_above ? slow : fast;
    const int i = first_row + (is_above ? fast : slow);
    float value = 0;
    if (k < width && i < N) value = is_above ? swept.row(begin + k)[i] : swept.row(i)[begin + k];
    panel[k][i - first_row] = value;
  }
  __syncthreads();
  const TilePlace place;
  float sums[kTileRows][kTileColumns];
  multiply_tiles(panel, inverse, place, sums);
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const int i = first_row + place.row(r);
    if (i >= N) continue;
#pragma unroll
    for (int c = 0; c < kTileColumns; ++c) {
      const int j = place.column + c;
      swept.product_PN[std::int64_t{j} * N + i] = sums[r][c];
      if (j < width) (is_above ? swept.row(begin + j)[i] : swept.row(i)[begin + j]) = sums[r][c];
    }
  }
  for (int e = thread; e < kPanel * kPanel; e += kTileThreads) {
    const int k = e / kPanel;
    const int i = e % kPanel;
    if (first_row + i < N) swept.panel_PN[std::int64_t{k} * N + first_row + i] = panel[k][i];
  }
}

/// Columns [first, first + 64) of a [P, N] matrix, zero behind its end.
__device__ void load_tile(const float* x_PN, int N, int first, float (*tile)[kPanel]) {
  const int thread = static_cast<int>(threadIdx.x);
  if (N % 4 == 0 && reinterpret_cast<std::uintptr_t>(x_PN) % 16 == 0) {
    constexpr int kVectors = kPanel / 4;
#pragma unroll 4
    for (int e = thread; e < kPanel * kVectors; e += kTileThreads) {
      const int k = e / kVectors;
      const int i = e % kVectors * 4;
      *reinterpret_cast<float4*>(&tile[k][i]) =
          first + i < N ? *reinterpret_cast<const float4*>(x_PN + std::int64_t{k} * N + first + i)
                        : make_float4(0, 0, 0, 0);
    }
    return;
  }
  for (int e = thread; e < kPanel * kPanel; e += kTileThreads) {
    const int k = e / kPanel;
    const int i = e % kPanel;
    tile[k][i] = first + i < N ? x_PN[std::int64_t{k} * N + first + i] : 0.0F;
  }
}

/// The row of a lower triangle of tiles, counted row by row, in which a tile stands.
__device__ int row_of_tile(int tile) {
  auto row = static_cast<int>((sqrtf(8.0F * static_cast<float>(tile) + 1) - 1) / 2);
  while (row * (row + 1) / 2 > tile) --row;
  while ((row + 1) * (row + 2) / 2 <= tile) ++row;
  return row;
}

/// Takes the panel's product away from the lower half, a tile for each block; the panel's own rows and
/// columns are done.
__global__ void __launch_bounds__(kTileThreads)
    take_panels_away(const __grid_constant__ SweptMatrices matrices, int panel_index) {
  const SweptMatrix& swept = matrices.at[blockIdx.y];
  const int N = swept.size;
  const int num_others = (N + kPanel - 1) / kPanel - 1;
  const auto tile = static_cast<int>(blockIdx.x);
  if (panel_index > num_others || tile >= num_others * (num_others + 1) / 2) return;
  const int tile_row = row_of_tile(tile);
  const int tile_column = tile - tile_row * (tile_row + 1) / 2;
  const int first_row = (tile_row + (tile_row >= panel_index ? 1 : 0)) * kPanel;
  const int first_column = (tile_column + (tile_column >= panel_index ? 1 : 0)) * kPanel;
  __shared__ alignas(16) float product[kPanel][kPanel];
  __shared__ alignas(16) float panel[kPanel][kPanel];
  load_tile(swept.product_PN, N, first_row, product);
  load_tile(swept.panel_PN, N, first_column, panel);
  __syncthreads();
  const TilePlace place;
  float sums[kTileRows][kTileColumns];
  multiply_tiles(product, panel, place, sums);
  const int j = first_column + place.column;
  const bool has_vectors = swept.has_vectors();
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const int i = first_row + place.row(r);
    if (i >= N) continue;
    float* const to = swept.row(i) + j;
    if (has_vectors && j < N) {
      float4 value = *reinterpret_cast<float4*>(to);
      value.x -= sums[r][0];
      value.y -= sums[r][1];
      value.z -= sums[r][2];
      value.w -= sums[r][3];
      *reinterpret_cast<float4*>(to) = value;
    } else {
#pragma unroll
      for (int c = 0; c < kTileColumns; ++c) {
        if (j + c < N) to[c] -= sums[r][c];
      }
    }
  }
}

// --- the last step -----------------------------------------------------------------------------------------

constexpr int kMirrorTile = 32;
constexpr int kMirrorRows = 8;  ///< of threads

/// Of the negative inverse in the lower half makes the whole inverse, a tile of the lower half and the one
/// that mirrors it for each block. Of matrices whose number of panels is among [first_step, end_step).
__global__ void __launch_bounds__(kMirrorTile* kMirrorRows)
    finish_inverses(const __grid_constant__ SweptMatrices matrices, int first_step, int end_step) {
  const SweptMatrix& swept = matrices.at[blockIdx.y];
  const int N = swept.size;
  const int num_panels = (N + kPanel - 1) / kPanel;
  const int num_tiles = (N + kMirrorTile - 1) / kMirrorTile;
  const auto tile = static_cast<int>(blockIdx.x);
  if (num_panels < first_step || num_panels >= end_step || tile >= num_tiles * (num_tiles + 1) / 2) return;
  const int tile_row = row_of_tile(tile);
  const int first_row = tile_row * kMirrorTile;
  const int first_column = (tile - tile_row * (tile_row + 1) / 2) * kMirrorTile;
  __shared__ float values[kMirrorTile][kMirrorTile + 1];
  const auto x = static_cast<int>(threadIdx.x);
  const int column = first_column + x;
  for (int r = static_cast<int>(threadIdx.y); r < kMirrorTile; r += kMirrorRows) {
    const int row = first_row + r;
    if (row >= N || column > row) continue;
    const float value = -swept.row(row)[column];
    swept.row(row)[column] = value;
    values[r][x] = value;
    if (!isfinite(value)) *failed_of(swept) = 1;  // whoever writes, writes the same
  }
  __syncthreads();
  const int mirrored_column = first_row + x;
  for (int r = static_cast<int>(threadIdx.y); r < kMirrorTile; r += kMirrorRows) {
    const int mirrored_row = first_column + r;
    if (mirrored_column < N && mirrored_row < mirrored_column)
      swept.row(mirrored_row)[mirrored_column] = values[x][r];
  }
}

/// The steps of matrices that are inverted at once.
class Sweep {
 public:
  Sweep(const tensor::Stream& stream, std::span<const SpdMatrix> matrices, float* room)
      : queue_(stream.cuda().handle()), num_matrices_(static_cast<unsigned>(matrices.size())) {
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const std::int64_t size = matrices[i].matrix_NN.size(0);
      SweptMatrix& swept = swept_.at[i];
      swept = {.matrix_NN = matrices[i].matrix_NN.data<float>(),
               .panel_PN = room,
               .product_PN = room + size * kPanel,
               .inverse_PP = room + 2 * size * kPanel,
               .state_C = matrices[i].state_C.data<double>(),
               .size = static_cast<int>(size),
               .least_pivot = static_cast<int>(index_of(matrices[i].least_pivot))};
      room += (2 * size + kPanel) * kPanel;
      most_rows_ = std::max(most_rows_, size);
    }
    most_panels_ = num_inverse_steps(most_rows_) - 1;
  }

  void run(std::int64_t first_step, std::int64_t end_step) const {
    if (most_rows_ == 0) return;
    for (std::int64_t step = first_step; step < std::min(end_step, most_panels_); ++step)
      eliminate(static_cast<int>(step));
    const std::int64_t num_tiles = (most_rows_ + kMirrorTile - 1) / kMirrorTile;
    finish_inverses<<<grid(num_tiles * (num_tiles + 1) / 2), dim3(kMirrorTile, kMirrorRows), 0, queue_>>>(
        swept_, static_cast<int>(first_step), static_cast<int>(end_step));
    tensor::check_cuda(cudaGetLastError(), "finish inverses");
  }

 private:
  dim3 grid(std::int64_t num_blocks) const { return {static_cast<unsigned>(num_blocks), num_matrices_}; }

  void eliminate(int panel_index) const {
    invert_blocks<<<num_matrices_, kBlockThreads, 0, queue_>>>(swept_, panel_index * kPanel);
    tensor::check_cuda(cudaGetLastError(), "invert diagonal blocks");
    replace_panels<<<grid(most_panels_), kTileThreads, 0, queue_>>>(swept_, panel_index * kPanel);
    tensor::check_cuda(cudaGetLastError(), "replace panels");
    const std::int64_t num_others = most_panels_ - 1;
    if (num_others == 0) return;
    take_panels_away<<<grid(num_others * (num_others + 1) / 2), kTileThreads, 0, queue_>>>(swept_,
                                                                                           panel_index);
    tensor::check_cuda(cudaGetLastError(), "take panels away");
  }

  cudaStream_t queue_;
  unsigned num_matrices_;
  std::int64_t most_rows_ = 0;
  std::int64_t most_panels_ = 0;
  SweptMatrices swept_ = {};
};

}  // namespace

void invert_spd(const tensor::Stream& stream, const InvertSpd& args) {
  for (std::size_t begin = 0; begin < args.matrices.size(); begin += kMatrices) {
    const std::size_t count = std::min<std::size_t>(kMatrices, args.matrices.size() - begin);
    Sweep(stream, args.matrices.subspan(begin, count), args.room.data<float>())
        .run(args.first_step, args.end_step);
  }
}

}  // namespace plenum::kernels::cuda
