#include <algorithm>

#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/rows/kronecker_factors.h"
#include "plenum/kernels/factor_scales.h"
#include "plenum/tensor/cuda_check.h"

// A launch works on many maps: blockIdx.y is a map, or one of the two factors of a map, whose rows or
// elements go round the blocks along x. All of it is bound by memory, once a refresh.

namespace plenum::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTraceThreads = 1024;
constexpr unsigned kBlocksOfMatrix = 64;
constexpr int kMaps = 24;  ///< of a launch: as many as a kernel's arguments have room for

/// What a kernel does to every map.
template <typename Map>
struct Maps {
  Map at[kMaps];
};

struct SquareRoot {
  __host__ __device__ double operator()(double x) const { return sqrt(x); }
};

/// One factor of a pair: its sum, its average if there is one, and how they make the factor.
struct Factor {
  std::int64_t size;
  const float* sum;
  const float* average;  ///< may be null
  double scale, keep;

  __device__ float element(std::int64_t i, const FactorParts& parts) const {
    const float newest = parts.newest * sum[i];
    return average == nullptr ? newest : newest + parts.kept * average[i];
  }
  __device__ FactorParts parts(const double* state_C) const {
    return factor_parts(scale, keep, average != nullptr, state_C[index_of(InverseState::AverageWeight)]);
  }
};

Factor factor_of(const tensor::ConstTensorView& sum, double scale, const tensor::TensorView& average,
                 double keep) {
  return {.size = sum.size(0),
          .sum = sum.data<float>(),
          .average = average ? average.data<float>() : nullptr,
          .scale = scale,
          .keep = keep};
}

__device__ double mean_of_diagonal(const Factor& factor, const FactorParts& parts,
                                   BlockReductionOf<double>& shared) {
  double trace = 0;
  for (std::int64_t i = threadIdx.x; i < factor.size; i += kTraceThreads)
    trace += double{factor.element(i * factor.size + i, parts)};
  return block_sum(trace, shared) / static_cast<double>(factor.size);
}

struct DampedMap {
  Factor a, b;
  double damping;
  float *damped_a, *damped_b;
  double* state_C;
};

/// A block for each map.
__global__ void __launch_bounds__(kTraceThreads) find_damping(const __grid_constant__ Maps<DampedMap> maps) {
  const DampedMap& map = maps.at[blockIdx.y];
  __shared__ BlockReductionOf<double> shared_a;
  __shared__ BlockReductionOf<double> shared_b;
  const double mean_a = mean_of_diagonal(map.a, map.a.parts(map.state_C), shared_a);
  const double mean_b = mean_of_diagonal(map.b, map.b.parts(map.state_C), shared_b);
  if (threadIdx.x != 0) return;
  const Damping found = damping_of(mean_a, mean_b, map.damping, SquareRoot{});
  map.state_C[index_of(InverseState::HasFailed)] = found.is_usable ? 0 : 1;
  map.state_C[index_of(InverseState::LeastPivotA)] = kPivotPart * found.a;
  map.state_C[index_of(InverseState::LeastPivotB)] = kPivotPart * found.b;
}

/// Calls body(row, column, element) for the lower half of a matrix.
template <typename Body>
__device__ void for_lower_half(std::int64_t size, Body body) {
  for (std::int64_t row = blockIdx.x; row < size; row += gridDim.x) {
    for (std::int64_t column = threadIdx.x; column <= row; column += kThreads)
      body(row, column, row * size + column);
  }
}

__global__ void __launch_bounds__(kThreads) write_damped(const __grid_constant__ Maps<DampedMap> maps) {
  const DampedMap& map = maps.at[blockIdx.y / 2];
  const bool is_a = blockIdx.y % 2 == 0;
  const Factor& factor = is_a ? map.a : map.b;
  float* const damped = is_a ? map.damped_a : map.damped_b;
  const FactorParts parts = factor.parts(map.state_C);
  const InverseState least_pivot = is_a ? InverseState::LeastPivotA : InverseState::LeastPivotB;
  const double damping = map.state_C[index_of(least_pivot)] / kPivotPart;
  for_lower_half(factor.size, [&](std::int64_t row, std::int64_t column, std::int64_t i) {
    const float value = factor.element(i, parts);
    damped[i] = column == row ? static_cast<float>(double{value} + damping) : value;
  });
}

/// Two matrices of a factor that may change places.
struct Exchange {
  float *x, *y;
  std::int64_t num_elements;
};
struct TakenMap {
  Exchange a, b;
  double* state_C;
  const double* skipped;  ///< may be null
};

/// A thread for each map.
__global__ void decide_taking(const __grid_constant__ Maps<TakenMap> maps) {
  const TakenMap& map = maps.at[threadIdx.x];
  const bool is_skipped = map.skipped != nullptr && *map.skipped > 0;
  const bool is_taken = map.state_C[index_of(InverseState::HasFailed)] == 0 && !is_skipped;
  map.state_C[index_of(InverseState::WasReady)] = map.state_C[index_of(InverseState::IsReady)];
  map.state_C[index_of(InverseState::IsTaken)] = is_taken ? 1 : 0;
  if (is_taken) map.state_C[index_of(InverseState::IsReady)] = 1;
}

/// Swaps matrices if an inverse was taken; where they are to be given back, only if the step was skipped.
__global__ void __launch_bounds__(kThreads)
    swap_matrices(const __grid_constant__ Maps<TakenMap> maps, bool is_return) {
  const TakenMap& map = maps.at[blockIdx.y / 2];
  if (map.state_C[index_of(InverseState::IsTaken)] == 0) return;
  if (is_return && *map.skipped == 0) return;
  const Exchange& of = blockIdx.y % 2 == 0 ? map.a : map.b;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < of.num_elements;
       i += std::int64_t{gridDim.x} * kThreads) {
    const float kept = of.x[i];
    of.x[i] = of.y[i];
    of.y[i] = kept;
  }
}

__global__ void decide_return(const __grid_constant__ Maps<TakenMap> maps) {
  const TakenMap& map = maps.at[threadIdx.x];
  if (*map.skipped == 0 || map.state_C[index_of(InverseState::IsTaken)] == 0) return;
  map.state_C[index_of(InverseState::IsReady)] = map.state_C[index_of(InverseState::WasReady)];
  map.state_C[index_of(InverseState::IsTaken)] = 0;
}

/// A factor's average and what is added to it.
struct Fold {
  const float* sum;
  float* average;
  float newest, kept;
  std::int64_t size;
};
struct FoldedMap {
  Fold a, b;
  double keep;
  double* state_C;
};

__global__ void __launch_bounds__(kThreads) fold(const __grid_constant__ Maps<FoldedMap> maps) {
  const FoldedMap& map = maps.at[blockIdx.y / 2];
  if (map.state_C[index_of(InverseState::IsTaken)] == 0) return;
  const Fold& of = blockIdx.y % 2 == 0 ? map.a : map.b;
  for_lower_half(of.size, [&](std::int64_t, std::int64_t, std::int64_t i) {
    of.average[i] = of.newest * of.sum[i] + of.kept * of.average[i];
  });
}

/// A thread for each map.
__global__ void add_weights(const __grid_constant__ Maps<FoldedMap> maps) {
  const FoldedMap& map = maps.at[threadIdx.x];
  double& weight = map.state_C[index_of(InverseState::AverageWeight)];
  if (map.state_C[index_of(InverseState::IsTaken)] != 0) weight = map.keep * weight + (1 - map.keep);
}

static_assert(sizeof(Maps<DampedMap>) <= 4096);

/// Calls body(maps, count) for as many maps at a time as a launch takes, each as `make` says.
template <typename Map, typename Args, typename Make, typename Body>
void for_maps(std::span<const Args> all, Make make, Body body) {
  for (std::size_t begin = 0; begin < all.size(); begin += kMaps) {
    Maps<Map> maps = {};
    const std::size_t count = std::min<std::size_t>(kMaps, all.size() - begin);
    for (std::size_t i = 0; i < count; ++i) maps.at[i] = make(all[begin + i]);
    body(maps, static_cast<unsigned>(count));
  }
}

dim3 blocks_of_factors(unsigned num_maps) {
  return {kBlocksOfMatrix, 2 * num_maps};
}

cudaStream_t queue_of(const tensor::Stream& stream) {
  return stream.cuda().handle();
}

Exchange exchange_of(const tensor::TensorView& x, const tensor::TensorView& y) {
  return {x.data<float>(), y.data<float>(), x.num_elements()};
}
TakenMap taken_map(const TakeInverse& args) {
  return {.a = exchange_of(args.new_a_DD, args.a_DD),
          .b = exchange_of(args.new_b_EE, args.b_EE),
          .state_C = args.state_C.data<double>(),
          .skipped = args.skipped_1 ? args.skipped_1.data<double>() : nullptr};
}

Fold fold_of(const tensor::ConstTensorView& sum, double scale, const tensor::TensorView& average,
             double keep) {
  return {.sum = sum.data<float>(),
          .average = average.data<float>(),
          .newest = static_cast<float>((1 - keep) * scale),
          .kept = static_cast<float>(keep),
          .size = sum.size(0)};
}

}  // namespace

void damp_factors(const tensor::Stream& stream, std::span<const DampFactors> maps) {
  const auto make = [](const DampFactors& args) -> DampedMap {
    return {.a = factor_of(args.sum_a_DD, args.a_scale, args.running.a_DD, args.running.keep),
            .b = factor_of(args.sum_b_EE, args.b_scale, args.running.b_EE, args.running.keep),
            .damping = args.damping,
            .damped_a = args.a_DD.data<float>(),
            .damped_b = args.b_EE.data<float>(),
            .state_C = args.state_C.data<double>()};
  };
  for_maps<DampedMap>(maps, make, [&](const Maps<DampedMap>& some, unsigned count) {
    find_damping<<<dim3(1, count), kTraceThreads, 0, queue_of(stream)>>>(some);
    write_damped<<<blocks_of_factors(count), kThreads, 0, queue_of(stream)>>>(some);
    tensor::check_cuda(cudaGetLastError(), "damp factors");
  });
}

void take_inverse(const tensor::Stream& stream, std::span<const TakeInverse> maps) {
  for_maps<TakenMap>(maps, taken_map, [&](const Maps<TakenMap>& some, unsigned count) {
    decide_taking<<<1, count, 0, queue_of(stream)>>>(some);
    swap_matrices<<<blocks_of_factors(count), kThreads, 0, queue_of(stream)>>>(some, false);
    tensor::check_cuda(cudaGetLastError(), "take inverses");
  });
}

void return_inverse(const tensor::Stream& stream, std::span<const ReturnInverse> maps) {
  const auto make = [](const ReturnInverse& args) { return taken_map(args.taken); };
  for_maps<TakenMap>(maps, make, [&](const Maps<TakenMap>& some, unsigned count) {
    swap_matrices<<<blocks_of_factors(count), kThreads, 0, queue_of(stream)>>>(some, true);
    decide_return<<<1, count, 0, queue_of(stream)>>>(some);
    tensor::check_cuda(cudaGetLastError(), "give back inverses");
  });
}

void fold_factors(const tensor::Stream& stream, std::span<const FoldFactors> maps) {
  const auto make = [](const FoldFactors& args) -> FoldedMap {
    const double keep = args.running.keep;
    return {.a = fold_of(args.sum_a_DD, args.a_scale, args.running.a_DD, keep),
            .b = fold_of(args.sum_b_EE, args.b_scale, args.running.b_EE, keep),
            .keep = keep,
            .state_C = args.state_C.data<double>()};
  };
  for_maps<FoldedMap>(maps, make, [&](const Maps<FoldedMap>& some, unsigned count) {
    fold<<<blocks_of_factors(count), kThreads, 0, queue_of(stream)>>>(some);
    add_weights<<<1, count, 0, queue_of(stream)>>>(some);
    tensor::check_cuda(cudaGetLastError(), "fold factors");
  });
}

}  // namespace plenum::kernels::cuda
