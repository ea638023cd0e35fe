#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/flat_elements.cuh"
#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/rows/optimizer_step.h"
#include "plenum/tensor/cuda_check.h"

// N elements of the flat buffers, C chunks of ranges, R ranges. A block takes a chunk, so work and sums are
// cut by shapes alone. All of it is bound by memory: each pass loads and stores every element once.

namespace plenum::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTotalThreads = 1024;

__device__ double& scalar(double* scalars_C, StepScalar which) {
  return scalars_C[index_of(which)];
}
__device__ float scalar(const double* scalars_C, StepScalar which) {
  return static_cast<float>(scalars_C[index_of(which)]);
}

/// A sum of squares in double precision, of which no finite element overflows: one sum for each lane.
class SquareSum {
 public:
  template <int kCount>
  __device__ void add(const FlatElements<kCount>& values) {
    for (int lane = 0; lane < kCount; ++lane) {
      const double value = values.at[lane];
      sums_[lane] += value * value;
    }
  }

  /// Over all threads of the block.
  __device__ double total(BlockReductionOf<double>& shared) const {
    return block_sum((sums_[0] + sums_[1]) + (sums_[2] + sums_[3]), shared);
  }

 private:
  double sums_[kFlatVector] = {};
};

__global__ void __launch_bounds__(kThreads)
    add_squares(const float* __restrict__ gradient_N, std::int64_t num_elements, double* __restrict__ sums) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * kSquaresBlock;
  SquareSum squares;
  for_flat_elements<kThreads>(
      begin, min(begin + kSquaresBlock, num_elements),
      [&](std::int64_t i, auto elements) { squares.add(elements.load(gradient_N + i)); });
  __shared__ BlockReductionOf<double> shared;
  const double sum = squares.total(shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// Adds the sums of all blocks to the step's squares.
__global__ void __launch_bounds__(kTotalThreads)
    add_sums(const double* __restrict__ sums, std::int64_t num_sums, double* __restrict__ scalars_C) {
  double part = 0;
  for (std::int64_t i = threadIdx.x; i < num_sums; i += kTotalThreads) part += sums[i];
  __shared__ BlockReductionOf<double> shared;
  const double total = block_sum(part, shared);
  if (threadIdx.x == 0) scalar(scalars_C, StepScalar::GradientSquares) += total;
}

/// What the host says of a decision.
struct DecisionSettings {
  double clip_norm, beta1, beta2;
  bool is_bias_corrected;
};

/// By one thread.
__global__ void decide(DecisionSettings settings, double* __restrict__ scalars_C) {
  const auto at = [&](StepScalar which) -> double& { return scalar(scalars_C, which); };
  const double norm = sqrt(at(StepScalar::GradientSquares));
  double loss = 0;
  for (std::size_t i = 0; i < batch::kMostObjectives; ++i)
    loss += scalars_C[index_of(StepScalar::FirstLoss) + i];
  const bool is_skipped = !isfinite(loss) || !isfinite(norm);
  if (!is_skipped) at(StepScalar::NumUpdates) += 1;
  const auto correction = [&](double beta) {
    return settings.is_bias_corrected ? 1 - pow(beta, at(StepScalar::NumUpdates)) : 1.0;
  };
  const bool is_within = settings.clip_norm == 0 || norm <= settings.clip_norm;
  at(StepScalar::GradientNorm) = norm;
  at(StepScalar::GradientScale) = is_within ? 1 : settings.clip_norm / norm;
  at(StepScalar::IsSkipped) = is_skipped ? 1 : 0;
  at(StepScalar::Correction1) = correction(settings.beta1);
  at(StepScalar::Correction2) = correction(settings.beta2);
}

/// A part of a range: a row of chunks_C4.
struct Chunk {
  std::int64_t begin, end;
  std::int32_t is_decayed;  // the settings: optimizer_chunks()
  float rate_factor;
  std::int64_t range_index;
};
static_assert(sizeof(Chunk) == 4 * sizeof(std::int64_t));

/// A step as the host knows it.
struct Step {
  explicit Step(const AdamStep& args)
      : chunks_C(reinterpret_cast<const Chunk*>(args.work.chunks_C4.data<std::int64_t>())),
        scalars_C(args.scalars_C.data<double>()),
        gradient(args.gradient_N.data<float>()),
        weight(args.weight_N.data<float>()),
        first_moment(args.first_moment_N.data<float>()),
        second_moment(args.second_moment_N.data<float>()),
        compute_weight(bfloat16_data(args.compute_weight_N)),
        beta1(static_cast<float>(args.beta1)),
        rest1(static_cast<float>(1 - args.beta1)),
        beta2(static_cast<float>(args.beta2)),
        rest2(static_cast<float>(1 - args.beta2)),
        epsilon(static_cast<float>(args.epsilon)),
        decay(static_cast<float>(args.decay)) {}

  const Chunk* chunks_C;
  const double* scalars_C;
  const float* gradient;
  float *weight, *first_moment, *second_moment;
  __nv_bfloat16* compute_weight;  ///< may be null
  float beta1, rest1, beta2, rest2, epsilon, decay;
};

__device__ double learning_rate(const Step& step, const Chunk& chunk) {
  return step.scalars_C[index_of(StepScalar::LearningRate)] * chunk.rate_factor;
}

/// A block's part of a step, with the scalars that were decided.
class ChunkStep {
 public:
  __device__ explicit ChunkStep(const Step& step)
      : step_(step),
        chunk_(step.chunks_C[blockIdx.x]),
        scale_(scalar(step.scalars_C, StepScalar::GradientScale)),
        first_factor_(1 / scalar(step.scalars_C, StepScalar::Correction1)),
        root_factor_(1 / sqrtf(scalar(step.scalars_C, StepScalar::Correction2))),
        decay_(chunk_.is_decayed != 0 ? step.decay : 0) {}

  __device__ const Chunk& chunk() const { return chunk_; }

  template <typename Body>
  __device__ void for_elements(Body body) const {
    for_flat_elements<kThreads>(chunk_.begin, chunk_.end, body);
  }

  template <int kCount>
  struct Moments {
    FlatElements<kCount> first, second;
  };

  template <int kCount>
  __device__ Moments<kCount> load_moments(std::int64_t i, FlatElements<kCount>) const {
    return {FlatElements<kCount>::load(step_.first_moment + i),
            FlatElements<kCount>::load(step_.second_moment + i)};
  }

  template <int kCount>
  __device__ Moments<kCount> update_moments(std::int64_t i, const FlatElements<kCount>& gradient,
                                            Moments<kCount> moments) const {
    for (int lane = 0; lane < kCount; ++lane) {
      const float g = gradient.at[lane] * scale_;
      moments.first.at[lane] = moments.first.at[lane] * step_.beta1 + g * step_.rest1;
      moments.second.at[lane] = moments.second.at[lane] * step_.beta2 + g * g * step_.rest2;
    }
    moments.first.store(step_.first_moment + i);
    moments.second.store(step_.second_moment + i);
    return moments;
  }

  /// What is taken from weights, for a learning rate of 1.
  template <int kCount>
  __device__ FlatElements<kCount> direction(const Moments<kCount>& moments,
                                            const FlatElements<kCount>& weights) const {
    FlatElements<kCount> result;
    for (int lane = 0; lane < kCount; ++lane) {
      const float root = sqrtf(moments.second.at[lane]) * root_factor_ + step_.epsilon;
      result.at[lane] = moments.first.at[lane] * first_factor_ / root + weights.at[lane] * decay_;
    }
    return result;
  }

  template <int kCount>
  __device__ void update_weights(std::int64_t i, const Moments<kCount>& moments, FlatElements<kCount> weights,
                                 float rate) const {
    const FlatElements<kCount> taken = direction(moments, weights);
    for (int lane = 0; lane < kCount; ++lane) weights.at[lane] -= taken.at[lane] * rate;
    weights.store(step_.weight + i);
    if (step_.compute_weight != nullptr) weights.store(step_.compute_weight + i);
  }

 private:
  const Step& step_;
  Chunk chunk_;
  float scale_;
  float first_factor_;  ///< what m is multiplied by
  float root_factor_;   ///< what sqrt(v) is multiplied by
  float decay_;
};

__device__ bool is_skipped(const Step& step) {
  return scalar(step.scalars_C, StepScalar::IsSkipped) > 0;
}

__global__ void __launch_bounds__(kThreads) adam(const __grid_constant__ Step step) {
  if (is_skipped(step)) return;
  const ChunkStep chunk(step);
  const auto rate = static_cast<float>(learning_rate(step, chunk.chunk()));
  chunk.for_elements([&](std::int64_t i, auto elements) {
    const auto gradient = elements.load(step.gradient + i);
    const auto weights = elements.load(step.weight + i);
    const auto moments = chunk.update_moments(i, gradient, chunk.load_moments(i, elements));
    chunk.update_weights(i, moments, weights, rate);
  });
}

/// Updates the moments of a chunk and leaves its sums of squares.
__global__ void __launch_bounds__(kThreads)
    moments_of_chunk(const __grid_constant__ Step step, LambSquares* squares_C) {
  if (is_skipped(step)) return;
  const ChunkStep chunk(step);
  SquareSum weight_squares;
  SquareSum direction_squares;
  chunk.for_elements([&](std::int64_t i, auto elements) {
    const auto gradient = elements.load(step.gradient + i);
    const auto weights = elements.load(step.weight + i);
    const auto moments = chunk.update_moments(i, gradient, chunk.load_moments(i, elements));
    weight_squares.add(weights);
    direction_squares.add(chunk.direction(moments, weights));
  });
  __shared__ BlockReductionOf<double> shared[2];
  const LambSquares squares = {weight_squares.total(shared[0]), direction_squares.total(shared[1])};
  if (threadIdx.x == 0) squares_C[blockIdx.x] = squares;
}

/// The first chunk of a range or of a later one: chunks lie in the order of their ranges.
__device__ std::int64_t first_chunk(const Chunk* chunks_C, std::int64_t num_chunks, std::int64_t range) {
  std::int64_t begin = 0;
  for (std::int64_t end = num_chunks; begin < end;) {
    const std::int64_t middle = (begin + end) / 2;
    if (chunks_C[middle].range_index < range) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

/// The learning rate of the weights of a chunk's range, from the squares of its tensor.
__device__ float lamb_rate(const Step& step, const Chunk& chunk, const LambSquares& total) {
  const bool has_ratio = chunk.is_decayed != 0 && total.weight > 0 && total.direction > 0;
  const double ratio = has_ratio ? sqrt(total.weight / total.direction) : 1.0;
  return static_cast<float>(learning_rate(step, chunk) * ratio);
}

/// Adds up the sums of chunks [begin, end), by all threads of a block; thread 0 has the result.
__device__ LambSquares sum_of_chunks(const LambSquares* squares_C, std::int64_t begin, std::int64_t end,
                                     BlockReductionOf<double> (&shared)[2]) {
  LambSquares part = {};
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    part.weight += squares_C[i].weight;
    part.direction += squares_C[i].direction;
  }
  return {block_sum(part.weight, shared[0]), block_sum(part.direction, shared[1])};
}

/// Adds up the sums of a range, a block for each, and leaves the learning rate of its weights.
__global__ void __launch_bounds__(kThreads)
    lamb_rates(const __grid_constant__ Step step, std::int64_t num_chunks, const LambSquares* squares_C,
               float* rate_R) {
  if (is_skipped(step)) return;
  const std::int64_t range = blockIdx.x;
  const std::int64_t begin = first_chunk(step.chunks_C, num_chunks, range);
  const std::int64_t end = first_chunk(step.chunks_C, num_chunks, range + 1);
  if (begin == end) return;
  __shared__ BlockReductionOf<double> shared[2];
  const LambSquares total = sum_of_chunks(squares_C, begin, end, shared);
  if (threadIdx.x == 0) rate_R[range] = lamb_rate(step, step.chunks_C[begin], total);
}

/// Adds up the sums of a range, a block for each, and leaves them.
__global__ void __launch_bounds__(kThreads)
    lamb_sums(const __grid_constant__ Step step, std::int64_t num_chunks, const LambSquares* squares_C,
              LambSquares* squares_R) {
  if (is_skipped(step)) return;
  const std::int64_t range = blockIdx.x;
  __shared__ BlockReductionOf<double> shared[2];
  const LambSquares total = sum_of_chunks(squares_C, first_chunk(step.chunks_C, num_chunks, range),
                                          first_chunk(step.chunks_C, num_chunks, range + 1), shared);
  if (threadIdx.x == 0) squares_R[range] = total;
}

/// Leaves the learning rate of a range's weights, a thread for each, from the squares of its tensor.
__global__ void __launch_bounds__(kThreads)
    lamb_rates_of_tensors(const __grid_constant__ Step step, std::int64_t num_chunks, std::int64_t num_ranges,
                          const LambSquares* squares_R, float* rate_R) {
  const std::int64_t range = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (is_skipped(step) || range >= num_ranges) return;
  const std::int64_t begin = first_chunk(step.chunks_C, num_chunks, range);
  if (begin == num_chunks || step.chunks_C[begin].range_index != range) return;  // it is empty
  rate_R[range] = lamb_rate(step, step.chunks_C[begin], squares_R[range]);
}

__global__ void __launch_bounds__(kThreads)
    weights_of_chunk(const __grid_constant__ Step step, const float* __restrict__ rate_R) {
  if (is_skipped(step)) return;
  const ChunkStep chunk(step);
  const float rate = rate_R[chunk.chunk().range_index];
  chunk.for_elements([&](std::int64_t i, auto elements) {
    const auto weights = elements.load(step.weight + i);
    chunk.update_weights(i, chunk.load_moments(i, elements), weights, rate);
  });
}

void check_launch(const char* what) {
  tensor::check_cuda(cudaGetLastError(), what);
}

/// A block for each chunk.
unsigned num_chunks(const AdamStep& args) {
  base::check(static_cast<bool>(args.work.chunks_C4) && args.work.chunks_C4.size(1) == 4,
              "the step of an optimizer on the GPU needs its chunks");
  return static_cast<unsigned>(args.work.chunks_C4.size(0));
}

}  // namespace

void add_gradient_squares(const tensor::Stream& stream, const GradientSquares& args) {
  const std::int64_t num_elements = args.gradient_N.num_elements();
  const std::int64_t num_sums = num_square_blocks(num_elements);
  if (num_sums == 0) return;
  const float* const gradient_N = args.gradient_N.data<float>();
  base::check(reinterpret_cast<std::uintptr_t>(gradient_N) % (kFlatVector * sizeof(float)) == 0,
              "the GPU loads gradients by whole vectors, which must lie at their multiples");
  check_scratch(stream, optimizer_scratch_bytes(tensor::Device::Cuda, num_elements, 0));
  auto* const sums = reinterpret_cast<double*>(stream.scratch().data());
  const cudaStream_t queue = stream.cuda().handle();
  add_squares<<<static_cast<unsigned>(num_sums), kThreads, 0, queue>>>(gradient_N, num_elements, sums);
  check_launch("add up the squares of a gradient");
  add_sums<<<1, kTotalThreads, 0, queue>>>(sums, num_sums, args.scalars_C.data<double>());
  check_launch("add up the sums of squares");
}

void decide_step(const tensor::Stream& stream, const StepDecision& args) {
  decide<<<1, 1, 0, stream.cuda().handle()>>>(
      {args.clip_norm, args.beta1, args.beta2, args.is_bias_corrected}, args.scalars_C.data<double>());
  check_launch("decide on a step");
}

void adam_step(const tensor::Stream& stream, const AdamStep& args) {
  if (args.ranges.empty()) return;
  const unsigned chunks = num_chunks(args);
  if (chunks == 0) return;
  adam<<<chunks, kThreads, 0, stream.cuda().handle()>>>(Step(args));
  check_launch("make a step of Adam");
}

void lamb_step(const tensor::Stream& stream, const AdamStep& args) {
  if (args.ranges.empty()) return;
  const unsigned chunks = num_chunks(args);
  if (chunks == 0) return;
  const auto num_ranges = static_cast<std::int64_t>(args.ranges.size());
  check_scratch(stream, chunks * sizeof(LambSquares) + args.ranges.size() * sizeof(float));
  auto* const squares_C = reinterpret_cast<LambSquares*>(stream.scratch().data());
  auto* const rate_R = reinterpret_cast<float*>(squares_C + chunks);
  const Step step(args);
  const cudaStream_t queue = stream.cuda().handle();
  moments_of_chunk<<<chunks, kThreads, 0, queue>>>(step, squares_C);
  check_launch("update LAMB's moments");
  lamb_rates<<<static_cast<unsigned>(num_ranges), kThreads, 0, queue>>>(step, chunks, squares_C, rate_R);
  check_launch("compute LAMB's rates");
  weights_of_chunk<<<chunks, kThreads, 0, queue>>>(step, rate_R);
  check_launch("update LAMB's weights");
}

void lamb_moments(const tensor::Stream& stream, const LambHalf& args) {
  if (args.step.ranges.empty()) return;
  const unsigned chunks = num_chunks(args.step);
  if (chunks == 0) return;
  check_scratch(stream, chunks * sizeof(LambSquares));
  auto* const squares_C = reinterpret_cast<LambSquares*>(stream.scratch().data());
  auto* const squares_R = reinterpret_cast<LambSquares*>(args.squares_R2.data<double>());
  const Step step(args.step);
  const cudaStream_t queue = stream.cuda().handle();
  moments_of_chunk<<<chunks, kThreads, 0, queue>>>(step, squares_C);
  check_launch("update LAMB's moments");
  lamb_sums<<<static_cast<unsigned>(args.step.ranges.size()), kThreads, 0, queue>>>(step, chunks, squares_C,
                                                                                    squares_R);
  check_launch("add up LAMB's squares");
}

void lamb_weights(const tensor::Stream& stream, const LambHalf& args) {
  if (args.step.ranges.empty()) return;
  const unsigned chunks = num_chunks(args.step);
  if (chunks == 0) return;
  const auto num_ranges = static_cast<std::int64_t>(args.step.ranges.size());
  check_scratch(stream, args.step.ranges.size() * sizeof(float));
  auto* const rate_R = reinterpret_cast<float*>(stream.scratch().data());
  const auto* const squares_R = reinterpret_cast<const LambSquares*>(args.squares_R2.data<double>());
  const Step step(args.step);
  const cudaStream_t queue = stream.cuda().handle();
  const auto blocks = static_cast<unsigned>((num_ranges + kThreads - 1) / kThreads);
  lamb_rates_of_tensors<<<blocks, kThreads, 0, queue>>>(step, chunks, num_ranges, squares_R, rate_R);
  check_launch("compute LAMB's rates");
  weights_of_chunk<<<chunks, kThreads, 0, queue>>>(step, rate_R);
  check_launch("update LAMB's weights");
}

}  // namespace plenum::kernels::cuda
