#include <algorithm>
#include <cmath>

#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/product/float_matmul.h"
#include "plenum/kernels/cuda/product/soap_step.h"
#include "plenum/kernels/cuda/rows/orthonormalise.h"
#include "plenum/kernels/soap_matrix.h"
#include "plenum/tensor/cuda_check.h"

// R rows and C columns of a matrix, B matrices of a group, some of which are worked on at once: a call
// multiplies all of them, and blockIdx.y is the matrix. Products are in fp32, as factors and bases are; what
// lies between them goes over single elements, and reads there whether the step is skipped: products of a
// skipped step leave nothing that is kept.

namespace plenum::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__device__ double scalar(const double* scalars_C, StepScalar which) {
  return scalars_C[index_of(which)];
}
__device__ bool is_skipped(const double* scalars_C) {
  return scalar(scalars_C, StepScalar::IsSkipped) > 0;
}
/// Updates that change moments and weights, with this one: all but the first.
__device__ double num_steps(const double* scalars_C) {
  return scalar(scalars_C, StepScalar::NumUpdates) - 1;
}
__device__ bool keeps_weights(const double* scalars_C) {
  return is_skipped(scalars_C) || num_steps(scalars_C) < 1;
}
__device__ std::int64_t element_index() {
  return std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

/// Matrices at equal distances.
template <typename Element>
struct Strided {
  Element* data;
  std::int64_t stride;

  __device__ Element& operator[](std::int64_t i) const { return data[blockIdx.y * stride + i]; }
};

/// G, and the first moment if there is one: M = kept M + rest G.
struct GradientTask {
  const double* scalars_C;
  Strided<const float> gradient;
  Strided<float> scaled;
  Strided<float> moment;  ///< data may be null
  float kept, rest;
  std::int64_t size;
};
__global__ void __launch_bounds__(kThreads) take_gradients(GradientTask task) {
  const std::int64_t i = element_index();
  if (i >= task.size || is_skipped(task.scalars_C)) return;
  const float g = task.gradient[i] * static_cast<float>(scalar(task.scalars_C, StepScalar::GradientScale));
  task.scaled[i] = g;
  if (task.moment.data != nullptr && !keeps_weights(task.scalars_C))
    task.moment[i] = task.moment[i] * task.kept + g * task.rest;
}

__global__ void __launch_bounds__(kThreads)
    average(const double* scalars_C, float* __restrict__ kept_values, const float* __restrict__ added,
            float kept, float rest, std::int64_t count) {
  const std::int64_t i = element_index();
  if (i >= count || is_skipped(scalars_C)) return;
  kept_values[i] = kept_values[i] * kept + added[i] * rest;
}

__global__ void __launch_bounds__(kThreads)
    make_identities(float* x_BNN, std::int64_t N, std::int64_t count) {
  const std::int64_t i = element_index();
  if (i >= count) return;
  const std::int64_t place = i % (N * N);
  x_BNN[i] = place / N == place % N ? 1.0F : 0.0F;
}

/// What is added to the factors' diagonals, a block for each.
__global__ void __launch_bounds__(kThreads)
    find_shifts(const float* __restrict__ factors_BNN, std::int64_t N, float* __restrict__ shifts_B) {
  const float* const factor_NN = factors_BNN + std::int64_t{blockIdx.x} * N * N;
  float part = 0;
  for (std::int64_t i = threadIdx.x; i < N; i += kThreads) part += factor_NN[i * N + i];
  __shared__ BlockReductionOf<float> shared;
  const float trace = block_sum(part, shared);
  if (threadIdx.x == 0) shifts_B[blockIdx.x] = trace > 0 ? kSoapShift * trace / static_cast<float>(N) : 1.0F;
}

/// Adds the shift times its basis to every product.
__global__ void __launch_bounds__(kThreads)
    add_shifts(const float* __restrict__ shifts_B, const float* __restrict__ bases_BNN,
               float* __restrict__ products_BNN, std::int64_t size) {
  const std::int64_t i = element_index();
  const std::int64_t place = blockIdx.y * size + i;
  if (i < size) products_BNN[place] += bases_BNN[place] * shifts_B[blockIdx.y];
}

__global__ void __launch_bounds__(kThreads)
    take_bases(const double* scalars_C, const float* __restrict__ from, float* __restrict__ to,
               std::int64_t count) {
  const std::int64_t i = element_index();
  if (i < count && !is_skipped(scalars_C)) to[i] = from[i];
}

/// V and U, of which the latter may lie where the rotated gradient does.
struct DirectionTask {
  const double* scalars_C;
  Strided<const float> gradient, moment;
  Strided<float> second, direction;
  double beta;
  float kept, rest, epsilon;
  std::int64_t size;
};
__global__ void __launch_bounds__(kThreads) make_directions(DirectionTask task) {
  const std::int64_t i = element_index();
  if (i >= task.size || keeps_weights(task.scalars_C)) return;
  const auto correction = static_cast<float>(1 - pow(task.beta, num_steps(task.scalars_C)));
  const float g = task.gradient[i];
  const float v = task.second[i] * task.kept + g * g * task.rest;
  task.second[i] = v;
  task.direction[i] = task.moment[i] / correction / (sqrtf(v / correction) + task.epsilon);
}

struct WeightTask {
  const double* scalars_C;
  Strided<const float> direction;
  Strided<float> weight;
  Strided<__nv_bfloat16> compute_weight;  ///< data may be null
  float decay;
  std::int64_t size;
};
__global__ void __launch_bounds__(kThreads) update_weights(WeightTask task) {
  const std::int64_t i = element_index();
  if (i >= task.size || keeps_weights(task.scalars_C)) return;
  const auto rate = static_cast<float>(scalar(task.scalars_C, StepScalar::LearningRate));
  const float before = task.weight[i];
  const float weight = before - (task.direction[i] + before * task.decay) * rate;
  task.weight[i] = weight;
  if (task.compute_weight.data != nullptr) task.compute_weight[i] = __float2bfloat16_rn(weight);
}

void check_launch(const char* what) {
  tensor::check_cuda(cudaGetLastError(), what);
}

unsigned num_blocks(std::int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

/// C [m, n] = A B of several matrices, C side by side.
struct Products {
  std::int64_t count, m, n, k;
  FloatOperand a, b;
  float* c;
};
void multiply(const tensor::Stream& stream, const Products& args) {
  float_matmul(stream, {.m = args.m,
                        .n = args.n,
                        .k = args.k,
                        .a = args.a,
                        .b = args.b,
                        .c = args.c,
                        .c_stride = args.n,
                        .num_products = args.count,
                        .c_batch_stride = args.count > 1 ? args.m * args.n : 0});
}

/// A step of one group.
class GroupStep {
 public:
  GroupStep(const tensor::Stream& stream, const SoapStep& args, const SoapGroup& group)
      : stream_(stream),
        queue_(stream.cuda().handle()),
        args_(args),
        scalars_C_(args.scalars_C.data<double>()),
        group_(group),
        R_(group.matrices.rows),
        C_(group.matrices.columns),
        size_(R_ * C_),
        kept_(static_cast<float>(args.beta)),
        rest_(static_cast<float>(1 - args.beta)) {}

  void begin_bases() const {
    for (const SoapSide& side : {group_.rows, group_.columns}) {
      const std::int64_t count = group_.matrices.count * side.N * side.N;
      if (count == 0) continue;
      make_identities<<<num_blocks(count), kThreads, 0, queue_>>>(side.bases_BNN, side.N, count);
      check_launch("begin SOAP's bases");
    }
  }

  void run() const {
    for_parts([&](const Part& part) {
      scale_gradients(part, flat(args_.first_moment_N, part));
      update_factors(part);
    });
    for (int iteration = 0; iteration < args_.num_iterations; ++iteration) {
      iterate(group_.rows);
      iterate(group_.columns);
    }
    for_parts([&](const Part& part) { update(part); });
  }

 private:
  /// Matrices that are worked on at once.
  struct Part {
    std::int64_t begin, count;

    /// From one to the next, as products want it.
    std::int64_t stride(std::int64_t of_several) const { return count > 1 ? of_several : 0; }
  };

  template <typename Body>
  void for_parts(Body body) const {
    for (std::int64_t begin = 0; begin < group_.matrices.count; begin += group_.num_at_once)
      body(Part{begin, std::min(group_.num_at_once, group_.matrices.count - begin)});
  }

  Strided<float> flat(const tensor::TensorView& flat_N, const Part& part) const {
    return {flat_N.data<float>() + group_.matrices.begin_of(part.begin), group_.matrices.stride};
  }
  Strided<float> room(float* matrices) const { return {matrices, size_}; }
  FloatOperand operand(const Strided<const float>& x, const Part& part, bool is_transposed = false) const {
    return {
        .data = x.data, .stride = C_, .is_transposed = is_transposed, .batch_stride = part.stride(x.stride)};
  }
  static FloatOperand square(const float* squares, const SoapSide& side, const Part& part,
                             bool is_transposed = false) {
    return {.data = squares + part.begin * side.N * side.N,
            .stride = side.N,
            .is_transposed = is_transposed,
            .batch_stride = part.stride(side.N * side.N)};
  }
  dim3 blocks(const Part& part) const { return {num_blocks(size_), static_cast<unsigned>(part.count)}; }

  void scale_gradients(const Part& part, Strided<float> moment) const {
    const float* const gradient = args_.gradient_N.data<float>() + group_.matrices.begin_of(part.begin);
    take_gradients<<<blocks(part), kThreads, 0, queue_>>>({scalars_C_,
                                                           {gradient, group_.matrices.stride},
                                                           room(group_.gradient_RC),
                                                           moment,
                                                           kept_,
                                                           rest_,
                                                           size_});
    check_launch("take gradients for SOAP");
  }

  void average_factors(const SoapSide& side, const Part& part) const {
    const std::int64_t count = part.count * side.N * side.N;
    average<<<num_blocks(count), kThreads, 0, queue_>>>(scalars_C_, side.factor(part.begin),
                                                        group_.squares_BNN, kept_, rest_, count);
    check_launch("average SOAP's factors");
  }

  void update_factors(const Part& part) const {
    const Strided<const float> scaled{group_.gradient_RC, size_};
    const FloatOperand gradient = operand(scaled, part);
    const FloatOperand transposed = operand(scaled, part, true);
    if (group_.rows) {
      multiply(stream_, {part.count, R_, R_, C_, gradient, transposed, group_.squares_BNN});
      average_factors(group_.rows, part);
    }
    if (group_.columns) {
      multiply(stream_, {part.count, C_, C_, R_, transposed, gradient, group_.squares_BNN});
      average_factors(group_.columns, part);
    }
  }

  void iterate(const SoapSide& side) const {
    if (!side) return;
    const Part all{0, group_.matrices.count};
    const std::int64_t N = side.N;
    multiply(stream_, {all.count, N, N, N, square(side.bases_BNN, side, all),
                       square(side.factors_BNN, side, all), group_.squares_BNN});
    find_shifts<<<static_cast<unsigned>(all.count), kThreads, 0, queue_>>>(side.factors_BNN, N,
                                                                           group_.gradient_RC);
    add_shifts<<<dim3(num_blocks(N * N), static_cast<unsigned>(all.count)), kThreads, 0, queue_>>>(
        group_.gradient_RC, side.bases_BNN, group_.squares_BNN, N * N);
    check_launch("shift SOAP's iterations");
    orthonormalise(stream_, {.x_BNN = {group_.squares_BNN, tensor::Shape{all.count, N, N}}});
    const std::int64_t count = all.count * N * N;
    take_bases<<<num_blocks(count), kThreads, 0, queue_>>>(scalars_C_, group_.squares_BNN, side.bases_BNN,
                                                           count);
    check_launch("take SOAP's bases");
  }

  /// x or, in `to`, P x Q^T; with is_back P^T x Q. `between` is overwritten.
  Strided<const float> rotate(const Part& part, Strided<const float> x, float* between, float* to,
                              bool is_back) const {
    if (group_.rows) {
      float* const result = group_.columns ? between : to;
      multiply(stream_, {part.count, R_, C_, R_, square(group_.rows.bases_BNN, group_.rows, part, is_back),
                         operand(x, part), result});
      x = {result, size_};
    }
    if (group_.columns) {
      multiply(stream_, {part.count, R_, C_, C_, operand(x, part),
                         square(group_.columns.bases_BNN, group_.columns, part, !is_back), to});
      x = {to, size_};
    }
    return x;
  }

  void update(const Part& part) const {
    scale_gradients(part, {nullptr, 0});
    const Strided<const float> scaled{group_.gradient_RC, size_};
    const Strided<float> first = flat(args_.first_moment_N, part);
    const auto gradient = rotate(part, scaled, group_.first_RC, group_.second_RC, false);
    const auto moment = rotate(part, {first.data, first.stride}, group_.first_RC, group_.third_RC, false);
    make_directions<<<blocks(part), kThreads, 0, queue_>>>(
        {scalars_C_, gradient, moment, flat(args_.second_moment_N, part), room(group_.second_RC), args_.beta,
         kept_, rest_, static_cast<float>(args_.epsilon), size_});
    check_launch("make SOAP's directions");
    const auto direction = rotate(part, {group_.second_RC, size_}, group_.first_RC, group_.third_RC, true);
    __nv_bfloat16* const compute = bfloat16_data(args_.compute_weight_N);
    const std::int64_t begin = group_.matrices.begin_of(part.begin);
    update_weights<<<blocks(part), kThreads, 0, queue_>>>(
        {scalars_C_,
         direction,
         flat(args_.weight_N, part),
         {compute == nullptr ? nullptr : compute + begin, group_.matrices.stride},
         group_.matrices.is_decayed ? static_cast<float>(args_.decay) : 0.0F,
         size_});
    check_launch("update weights by SOAP");
  }

  const tensor::Stream& stream_;
  cudaStream_t queue_;
  const SoapStep& args_;
  const double* scalars_C_;
  const SoapGroup& group_;
  std::int64_t R_, C_, size_;
  float kept_, rest_;
};

}  // namespace

void soap_step(const tensor::Stream& stream, const SoapStep& args) {
  std::int64_t state_begin = 0;
  for (const FlatMatrices& matrices : args.groups) {
    const SoapGroup group(tensor::Device::Cuda, args, matrices, state_begin);
    state_begin = group.place.end();
    if (matrices.count == 0) continue;
    const GroupStep step(stream, args, group);
    if (args.is_first) step.begin_bases();
    step.run();
  }
}

}  // namespace plenum::kernels::cuda
