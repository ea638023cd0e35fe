#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/rows/kronecker_factors.h"
#include "plenum/kernels/factor_scales.h"
#include "plenum/tensor/cuda_check.h"

// Grids have a row of blocks for every row of a matrix. All of it is bound by memory, once a refresh.

namespace plenum::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTraceThreads = 1024;

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

/// One block.
__global__ void __launch_bounds__(kTraceThreads)
    find_damping(Factor a, Factor b, double damping, double* __restrict__ state_C) {
  __shared__ BlockReductionOf<double> shared_a;
  __shared__ BlockReductionOf<double> shared_b;
  const double mean_a = mean_of_diagonal(a, a.parts(state_C), shared_a);
  const double mean_b = mean_of_diagonal(b, b.parts(state_C), shared_b);
  if (threadIdx.x != 0) return;
  const Damping found = damping_of(mean_a, mean_b, damping, SquareRoot{});
  state_C[index_of(InverseState::HasFailed)] = found.is_usable ? 0 : 1;
  state_C[index_of(InverseState::LeastPivotA)] = kPivotPart * found.a;
  state_C[index_of(InverseState::LeastPivotB)] = kPivotPart * found.b;
}

__global__ void __launch_bounds__(kThreads)
    write_damped(Factor factor, InverseState least_pivot, const double* __restrict__ state_C,
                 float* __restrict__ damped) {
  const std::int64_t row = blockIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column > row) return;
  const std::int64_t i = row * factor.size + column;
  const float value = factor.element(i, factor.parts(state_C));
  const double damping = state_C[index_of(least_pivot)] / kPivotPart;
  damped[i] = column == row ? static_cast<float>(double{value} + damping) : value;
}

__global__ void decide_taking(const double* __restrict__ skipped, double* __restrict__ state_C) {
  const bool is_skipped = skipped != nullptr && *skipped > 0;
  const bool is_taken = state_C[index_of(InverseState::HasFailed)] == 0 && !is_skipped;
  state_C[index_of(InverseState::WasReady)] = state_C[index_of(InverseState::IsReady)];
  state_C[index_of(InverseState::IsTaken)] = is_taken ? 1 : 0;
  if (is_taken) state_C[index_of(InverseState::IsReady)] = 1;
}

/// Swaps the elements of two matrices if an inverse was taken, and the step was skipped where that is asked.
__global__ void __launch_bounds__(kThreads)
    swap_elements(float* __restrict__ x, float* __restrict__ y, std::int64_t num_elements,
                  const double* __restrict__ state_C, const double* __restrict__ skipped) {
  if (state_C[index_of(InverseState::IsTaken)] == 0) return;
  if (skipped != nullptr && *skipped == 0) return;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= num_elements) return;
  const float kept = x[i];
  x[i] = y[i];
  y[i] = kept;
}

__global__ void decide_return(const double* __restrict__ skipped, double* __restrict__ state_C) {
  if (*skipped == 0 || state_C[index_of(InverseState::IsTaken)] == 0) return;
  state_C[index_of(InverseState::IsReady)] = state_C[index_of(InverseState::WasReady)];
  state_C[index_of(InverseState::IsTaken)] = 0;
}

__global__ void __launch_bounds__(kThreads)
    fold(const float* __restrict__ sum, float newest, float kept, std::int64_t size,
         const double* __restrict__ state_C, float* __restrict__ average) {
  if (state_C[index_of(InverseState::IsTaken)] == 0) return;
  const std::int64_t row = blockIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column > row) return;
  const std::int64_t i = row * size + column;
  average[i] = newest * sum[i] + kept * average[i];
}

__global__ void add_weight(double keep, double* __restrict__ state_C) {
  double& weight = state_C[index_of(InverseState::AverageWeight)];
  if (state_C[index_of(InverseState::IsTaken)] != 0) weight = keep * weight + (1 - keep);
}

dim3 blocks_of(std::int64_t size) {
  return {static_cast<unsigned>((size + kThreads - 1) / kThreads), static_cast<unsigned>(size)};
}

cudaStream_t queue_of(const tensor::Stream& stream) {
  return stream.cuda().handle();
}

void swap_matrices(const tensor::Stream& stream, const tensor::TensorView& x, const tensor::TensorView& y,
                   const double* state_C, const double* skipped) {
  const std::int64_t count = x.num_elements();
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  swap_elements<<<blocks, kThreads, 0, queue_of(stream)>>>(x.data<float>(), y.data<float>(), count, state_C,
                                                           skipped);
}

const double* skipped_of(const TakeInverse& args) {
  return args.skipped_1 ? args.skipped_1.data<double>() : nullptr;
}

void fold_one(const tensor::Stream& stream, const tensor::ConstTensorView& sum, double scale,
              const tensor::TensorView& average, double keep, const double* state_C) {
  fold<<<blocks_of(sum.size(0)), kThreads, 0, queue_of(stream)>>>(
      sum.data<float>(), static_cast<float>((1 - keep) * scale), static_cast<float>(keep), sum.size(0),
      state_C, average.data<float>());
}

}  // namespace

void damp_factors(const tensor::Stream& stream, const DampFactors& args) {
  const Factor a = factor_of(args.sum_a_DD, args.a_scale, args.running.a_DD, args.running.keep);
  const Factor b = factor_of(args.sum_b_EE, args.b_scale, args.running.b_EE, args.running.keep);
  double* const state_C = args.state_C.data<double>();
  find_damping<<<1, kTraceThreads, 0, queue_of(stream)>>>(a, b, args.damping, state_C);
  write_damped<<<blocks_of(a.size), kThreads, 0, queue_of(stream)>>>(a, InverseState::LeastPivotA, state_C,
                                                                     args.a_DD.data<float>());
  write_damped<<<blocks_of(b.size), kThreads, 0, queue_of(stream)>>>(b, InverseState::LeastPivotB, state_C,
                                                                     args.b_EE.data<float>());
  tensor::check_cuda(cudaGetLastError(), "damp factors");
}

void take_inverse(const tensor::Stream& stream, const TakeInverse& args) {
  double* const state_C = args.state_C.data<double>();
  decide_taking<<<1, 1, 0, queue_of(stream)>>>(skipped_of(args), state_C);
  swap_matrices(stream, args.new_a_DD, args.a_DD, state_C, nullptr);
  swap_matrices(stream, args.new_b_EE, args.b_EE, state_C, nullptr);
  tensor::check_cuda(cudaGetLastError(), "take an inverse");
}

void return_inverse(const tensor::Stream& stream, const ReturnInverse& args) {
  const TakeInverse& taken = args.taken;
  double* const state_C = taken.state_C.data<double>();
  swap_matrices(stream, taken.new_a_DD, taken.a_DD, state_C, skipped_of(taken));
  swap_matrices(stream, taken.new_b_EE, taken.b_EE, state_C, skipped_of(taken));
  decide_return<<<1, 1, 0, queue_of(stream)>>>(skipped_of(taken), state_C);
  tensor::check_cuda(cudaGetLastError(), "give back an inverse");
}

void fold_factors(const tensor::Stream& stream, const FoldFactors& args) {
  double* const state_C = args.state_C.data<double>();
  const double keep = args.running.keep;
  fold_one(stream, args.sum_a_DD, args.a_scale, args.running.a_DD, keep, state_C);
  fold_one(stream, args.sum_b_EE, args.b_scale, args.running.b_EE, keep, state_C);
  add_weight<<<1, 1, 0, queue_of(stream)>>>(keep, state_C);
  tensor::check_cuda(cudaGetLastError(), "fold factors");
}

}  // namespace plenum::kernels::cuda
