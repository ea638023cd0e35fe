#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/flat_elements.cuh"
#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/product/muon_step.h"
#include "plenum/kernels/cuda/product/newton_schulz.h"
#include "plenum/tensor/cuda_check.h"

// N elements of the flat buffers, C chunks of matrices, R matrices. The iterations of a matrix lie in its
// part of iterate_N: n elements of bf16 that they begin with, behind them n that they end with.

namespace plenum::kernels::cuda {
namespace {

constexpr int kThreads = 256;
/// Below which a gradient is not made longer.
constexpr double kLeastNorm = 1e-7;

/// A part of a matrix: a row of chunks_C8.
struct MatrixChunk {
  std::int64_t begin, end, matrix_begin, matrix_elements, largest_size, is_decayed, matrix_index, unused;
};
static_assert(sizeof(MatrixChunk) == workspace::kMatrixChunkNumbers * sizeof(std::int64_t));

/// A step as the host knows it.
struct Step {
  explicit Step(const MuonStep& args)
      : chunks_C(reinterpret_cast<const MatrixChunk*>(args.chunks_C8.data<std::int64_t>())),
        scalars_C(args.scalars_C.data<double>()),
        gradient(args.gradient_N.data<float>()),
        weight(args.weight_N.data<float>()),
        moment(args.moment_N.data<float>()),
        iterate(reinterpret_cast<__nv_bfloat16*>(args.iterate_N.data<float>())),
        compute_weight(bfloat16_data(args.compute_weight_N)),
        kept(static_cast<float>(args.momentum)),
        rest(static_cast<float>(1 - args.momentum)),
        decay(static_cast<float>(args.decay)) {}

  const MatrixChunk* chunks_C;
  const double* scalars_C;
  const float* gradient;
  float *weight, *moment;
  __nv_bfloat16* iterate;
  __nv_bfloat16* compute_weight;  ///< may be null
  float kept, rest, decay;

  __device__ float scalar(StepScalar which) const { return static_cast<float>(scalars_C[index_of(which)]); }
  __device__ bool is_skipped() const { return scalar(StepScalar::IsSkipped) > 0; }
  /// Where the iterations of an element begin, and where they end.
  __device__ __nv_bfloat16* begun(const MatrixChunk& chunk, std::int64_t i) const {
    return iterate + chunk.matrix_begin + i;
  }
  __device__ const __nv_bfloat16* ended(const MatrixChunk& chunk, std::int64_t i) const {
    return begun(chunk, i) + chunk.matrix_elements;
  }
};

template <int kCount>
__device__ FlatElements<kCount> load(const __nv_bfloat16* from) {
  FlatElements<kCount> result;
  if constexpr (kCount == 1) {
    result.at[0] = __bfloat162float(*from);
  } else {
    const uint2 loaded = *reinterpret_cast<const uint2*>(from);
    const float2 low = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(loaded.x));
    const float2 high = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(loaded.y));
    result = {low.x, low.y, high.x, high.y};
  }
  return result;
}

/// Updates the moments of a chunk and leaves the sum of squares of its direction.
__global__ void __launch_bounds__(kThreads)
    update_moments(const __grid_constant__ Step step, double* __restrict__ squares_C) {
  if (step.is_skipped()) return;
  const MatrixChunk chunk = step.chunks_C[blockIdx.x];
  const float scale = step.scalar(StepScalar::GradientScale);
  double sums[kFlatVector] = {};
  for_flat_elements<kThreads>(chunk.begin, chunk.end, [&](std::int64_t i, auto elements) {
    const auto gradient = elements.load(step.gradient + i);
    auto moment = elements.load(step.moment + i);
    constexpr int kCount = sizeof(moment.at) / sizeof(float);
    for (int lane = 0; lane < kCount; ++lane) {
      const float added = gradient.at[lane] * scale * step.rest;
      moment.at[lane] = moment.at[lane] * step.kept + added;
      const double direction = moment.at[lane] * step.kept + added;
      sums[lane] += direction * direction;
    }
    moment.store(step.moment + i);
  });
  __shared__ BlockReductionOf<double> shared;
  const double sum = block_sum((sums[0] + sums[1]) + (sums[2] + sums[3]), shared);
  if (threadIdx.x == 0) squares_C[blockIdx.x] = sum;
}

/// The first chunk of a matrix or of a later one: chunks lie in the order of their matrices.
__device__ std::int64_t first_chunk(const MatrixChunk* chunks_C, std::int64_t num_chunks,
                                    std::int64_t matrix) {
  std::int64_t begin = 0;
  for (std::int64_t end = num_chunks; begin < end;) {
    const std::int64_t middle = (begin + end) / 2;
    if (chunks_C[middle].matrix_index < matrix) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

/// Adds up the sums of a matrix, a block for each, and leaves what its direction is multiplied by.
__global__ void __launch_bounds__(kThreads)
    make_scales(const __grid_constant__ Step step, std::int64_t num_chunks,
                const double* __restrict__ squares_C, float* __restrict__ scale_R) {
  if (step.is_skipped()) return;
  const std::int64_t begin = first_chunk(step.chunks_C, num_chunks, blockIdx.x);
  const std::int64_t end = first_chunk(step.chunks_C, num_chunks, std::int64_t{blockIdx.x} + 1);
  double part = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) part += squares_C[i];
  __shared__ BlockReductionOf<double> shared;
  const double total = block_sum(part, shared);
  if (threadIdx.x == 0) scale_R[blockIdx.x] = static_cast<float>(1 / max(sqrt(total), kLeastNorm));
}

__global__ void __launch_bounds__(kThreads)
    begin_iterations(const __grid_constant__ Step step, const float* __restrict__ scale_R) {
  if (step.is_skipped()) return;
  const MatrixChunk chunk = step.chunks_C[blockIdx.x];
  const float gradient_scale = step.scalar(StepScalar::GradientScale);
  const float scale = scale_R[chunk.matrix_index];
  for_flat_elements<kThreads>(chunk.begin, chunk.end, [&](std::int64_t i, auto elements) {
    const auto gradient = elements.load(step.gradient + i);
    auto direction = elements.load(step.moment + i);
    constexpr int kCount = sizeof(direction.at) / sizeof(float);
    for (int lane = 0; lane < kCount; ++lane) {
      const float added = gradient.at[lane] * gradient_scale * step.rest;
      direction.at[lane] = (direction.at[lane] * step.kept + added) * scale;
    }
    direction.store(step.begun(chunk, i));
  });
}

__global__ void __launch_bounds__(kThreads) update_weights(const __grid_constant__ Step step) {
  if (step.is_skipped()) return;
  const MatrixChunk chunk = step.chunks_C[blockIdx.x];
  const float rate = step.scalar(StepScalar::LearningRate);
  const float factor = 0.2F * sqrtf(static_cast<float>(chunk.largest_size));
  const float decay = chunk.is_decayed != 0 ? step.decay : 0.0F;
  for_flat_elements<kThreads>(chunk.begin, chunk.end, [&](std::int64_t i, auto elements) {
    auto weight = elements.load(step.weight + i);
    constexpr int kCount = sizeof(weight.at) / sizeof(float);
    const auto update = load<kCount>(step.ended(chunk, i));
    for (int lane = 0; lane < kCount; ++lane)
      weight.at[lane] -= (update.at[lane] * factor + weight.at[lane] * decay) * rate;
    weight.store(step.weight + i);
    if (step.compute_weight != nullptr) weight.store(step.compute_weight + i);
  });
}

void check_launch(const char* what) {
  tensor::check_cuda(cudaGetLastError(), what);
}

void orthogonalise(const tensor::Stream& stream, const MuonStep& args, const FlatMatrices& group) {
  using tensor::BFloat16;
  const std::int64_t stride = 2 * group.stride;
  const tensor::Shape extent{(group.count - 1) * stride + group.num_elements()};
  auto* const begun = reinterpret_cast<BFloat16*>(args.iterate_N.data<float>() + group.begin);
  const std::int64_t K = group.least_size();
  newton_schulz(stream, {.num_matrices = group.count,
                         .rows = group.rows,
                         .columns = group.columns,
                         .stride = stride,
                         .x = {begun, extent},
                         .y = {begun + group.num_elements(), extent},
                         .squares_2BKK = {args.room.data<BFloat16>(), {2, group.count, K, K}}});
}

/// How many matrices there are. Each must lie where the GPU loads whole vectors of it.
std::int64_t num_matrices(const MuonStep& args) {
  std::int64_t count = 0;
  for (const FlatMatrices& group : args.groups) {
    base::check(group.begin % kFlatVector == 0 && group.stride % kFlatVector == 0 &&
                    group.num_elements() % kFlatVector == 0,
                "the GPU loads matrices by whole vectors: {} elements from {} on, {} apart",
                group.num_elements(), group.begin, group.stride);
    count += group.count;
  }
  return count;
}

}  // namespace

void muon_step(const tensor::Stream& stream, const MuonStep& args) {
  const auto matrices = static_cast<unsigned>(num_matrices(args));
  const std::int64_t num_chunks = workspace::num_matrix_chunks(args.groups);
  if (num_chunks == 0) return;
  base::check(static_cast<bool>(args.chunks_C8) && args.chunks_C8.size(0) == num_chunks &&
                  args.chunks_C8.size(1) == workspace::kMatrixChunkNumbers,
              "a step of Muon on the GPU needs its {} chunks", num_chunks);
  const auto chunks = static_cast<unsigned>(num_chunks);
  check_scratch(stream, chunks * sizeof(double) + matrices * sizeof(float));
  auto* const squares_C = reinterpret_cast<double*>(stream.scratch().data());
  auto* const scale_R = reinterpret_cast<float*>(squares_C + chunks);
  const Step step(args);
  const cudaStream_t queue = stream.cuda().handle();
  update_moments<<<chunks, kThreads, 0, queue>>>(step, squares_C);
  check_launch("update Muon's moments");
  make_scales<<<matrices, kThreads, 0, queue>>>(step, num_chunks, squares_C, scale_R);
  check_launch("add up the squares of Muon's directions");
  begin_iterations<<<chunks, kThreads, 0, queue>>>(step, scale_R);
  check_launch("begin Newton-Schulz iterations");
  // Of a skipped step they go on from the last one's, which changes nothing that is kept.
  for (const FlatMatrices& group : args.groups) orthogonalise(stream, args, group);
  update_weights<<<chunks, kThreads, 0, queue>>>(step);
  check_launch("update weights by Muon");
}

}  // namespace plenum::kernels::cuda
