#include <cmath>

#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/product/float_matmul.h"
#include "plenum/kernels/cuda/product/soap_step.h"
#include "plenum/kernels/cuda/rows/orthonormalise.h"
#include "plenum/kernels/soap_matrix.h"
#include "plenum/tensor/cuda_check.h"

// R rows and C columns of a matrix, B matrices of a group. Products are in fp32, as factors and bases are;
// what lies between them goes over single elements, and reads there whether the step is skipped: products of
// a skipped step leave nothing that is kept.

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

/// G, and the first moment if there is one: M = kept M + rest G.
struct GradientTask {
  const double* scalars_C;
  const float* gradient;
  float* scaled;
  float* moment;  ///< may be null
  float kept, rest;
  std::int64_t count;
};
__global__ void __launch_bounds__(kThreads) take_gradient(GradientTask task) {
  const std::int64_t i = element_index();
  if (i >= task.count || is_skipped(task.scalars_C)) return;
  const float g = task.gradient[i] * static_cast<float>(scalar(task.scalars_C, StepScalar::GradientScale));
  task.scaled[i] = g;
  if (task.moment != nullptr && !keeps_weights(task.scalars_C))
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

/// Adds the shift times its basis to every product, a block for each.
__global__ void __launch_bounds__(kThreads)
    add_shift(const float* __restrict__ factors_BNN, const float* __restrict__ bases_BNN,
              float* __restrict__ products_BNN, std::int64_t N) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * N * N;
  float part = 0;
  for (std::int64_t i = threadIdx.x; i < N; i += kThreads) part += factors_BNN[begin + i * N + i];
  __shared__ BlockReductionOf<float> shared;
  const float trace = block_sum(part, shared);
  const float shift = trace > 0 ? kSoapShift * trace / static_cast<float>(N) : 1.0F;
  for (std::int64_t i = threadIdx.x; i < N * N; i += kThreads)
    products_BNN[begin + i] += bases_BNN[begin + i] * shift;
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
  const float* gradient;
  const float* moment;
  float* second;
  float* direction;
  double beta;
  float kept, rest, epsilon;
  std::int64_t count;
};
__global__ void __launch_bounds__(kThreads) make_direction(DirectionTask task) {
  const std::int64_t i = element_index();
  if (i >= task.count || keeps_weights(task.scalars_C)) return;
  const auto correction = static_cast<float>(1 - pow(task.beta, num_steps(task.scalars_C)));
  const float g = task.gradient[i];
  const float v = task.second[i] * task.kept + g * g * task.rest;
  task.second[i] = v;
  task.direction[i] = task.moment[i] / correction / (sqrtf(v / correction) + task.epsilon);
}

struct WeightTask {
  const double* scalars_C;
  const float* direction;
  float* weight;
  __nv_bfloat16* compute_weight;  ///< may be null
  float decay;
  std::int64_t count;
};
__global__ void __launch_bounds__(kThreads) update_weight(WeightTask task) {
  const std::int64_t i = element_index();
  if (i >= task.count || keeps_weights(task.scalars_C)) return;
  const auto rate = static_cast<float>(scalar(task.scalars_C, StepScalar::LearningRate));
  const float before = task.weight[i];
  const float weight = before - (task.direction[i] + before * task.decay) * rate;
  task.weight[i] = weight;
  if (task.compute_weight != nullptr) task.compute_weight[i] = __float2bfloat16_rn(weight);
}

void check_launch(const char* what) {
  tensor::check_cuda(cudaGetLastError(), what);
}

unsigned num_blocks(std::int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

/// C [m, n] = A B.
struct Product {
  std::int64_t m, n, k;
  FloatOperand a, b;
  float* c;
};
void multiply(const tensor::Stream& stream, const Product& args) {
  float_matmul(
      stream,
      {.m = args.m, .n = args.n, .k = args.k, .a = args.a, .b = args.b, .c = args.c, .c_stride = args.n});
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
    for (std::int64_t i = 0; i < group_.matrices.count; ++i) {
      scale_gradient(i, at(args_.first_moment_N, i));
      update_factors(i);
    }
    for (int iteration = 0; iteration < args_.num_iterations; ++iteration) {
      iterate(group_.rows);
      iterate(group_.columns);
    }
    for (std::int64_t i = 0; i < group_.matrices.count; ++i) update(i);
  }

 private:
  float* at(const tensor::TensorView& flat, std::int64_t index) const {
    return flat.data<float>() + group_.matrices.begin_of(index);
  }

  void scale_gradient(std::int64_t index, float* moment) const {
    take_gradient<<<num_blocks(size_), kThreads, 0, queue_>>>(
        {scalars_C_, args_.gradient_N.data<float>() + group_.matrices.begin_of(index), group_.gradient_RC,
         moment, kept_, rest_, size_});
    check_launch("take a gradient for SOAP");
  }

  void average_factor(float* factor, std::int64_t count) const {
    average<<<num_blocks(count), kThreads, 0, queue_>>>(scalars_C_, factor, group_.squares_BNN, kept_, rest_,
                                                        count);
    check_launch("average SOAP's factors");
  }

  void update_factors(std::int64_t index) const {
    const FloatOperand gradient = {.data = group_.gradient_RC, .stride = C_};
    const FloatOperand transposed = {.data = group_.gradient_RC, .stride = C_, .is_transposed = true};
    if (group_.rows) {
      multiply(stream_, {R_, R_, C_, gradient, transposed, group_.squares_BNN});
      average_factor(group_.rows.factor(index), R_ * R_);
    }
    if (group_.columns) {
      multiply(stream_, {C_, C_, R_, transposed, gradient, group_.squares_BNN});
      average_factor(group_.columns.factor(index), C_ * C_);
    }
  }

  void iterate(const SoapSide& side) const {
    if (!side) return;
    const std::int64_t B = group_.matrices.count;
    const std::int64_t N = side.N;
    for (std::int64_t i = 0; i < B; ++i) {
      multiply(stream_, {N,
                         N,
                         N,
                         {.data = side.basis(i), .stride = N},
                         {.data = side.factor(i), .stride = N},
                         group_.squares_BNN + i * N * N});
    }
    add_shift<<<static_cast<unsigned>(B), kThreads, 0, queue_>>>(side.factors_BNN, side.bases_BNN,
                                                                 group_.squares_BNN, N);
    check_launch("shift SOAP's iterations");
    orthonormalise(stream_, {.x_BNN = {group_.squares_BNN, tensor::Shape{B, N, N}}});
    take_bases<<<num_blocks(B * N * N), kThreads, 0, queue_>>>(scalars_C_, group_.squares_BNN, side.bases_BNN,
                                                               B * N * N);
    check_launch("take SOAP's bases");
  }

  /// x or, in `to`, P x Q^T; with is_back P^T x Q. `between` is overwritten.
  const float* rotate(std::int64_t index, const float* x, float* between, float* to, bool is_back) const {
    if (group_.rows) {
      float* const result = group_.columns ? between : to;
      multiply(stream_, {R_,
                         C_,
                         R_,
                         {.data = group_.rows.basis(index), .stride = R_, .is_transposed = is_back},
                         {.data = x, .stride = C_},
                         result});
      x = result;
    }
    if (group_.columns) {
      multiply(stream_, {R_,
                         C_,
                         C_,
                         {.data = x, .stride = C_},
                         {.data = group_.columns.basis(index), .stride = C_, .is_transposed = !is_back},
                         to});
      x = to;
    }
    return x;
  }

  void update(std::int64_t index) const {
    scale_gradient(index, nullptr);
    const float* const gradient = rotate(index, group_.gradient_RC, group_.first_RC, group_.second_RC, false);
    const float* const moment =
        rotate(index, at(args_.first_moment_N, index), group_.first_RC, group_.third_RC, false);
    make_direction<<<num_blocks(size_), kThreads, 0, queue_>>>(
        {scalars_C_, gradient, moment, at(args_.second_moment_N, index), group_.second_RC, args_.beta, kept_,
         rest_, static_cast<float>(args_.epsilon), size_});
    check_launch("make SOAP's direction");
    const float* const direction = rotate(index, group_.second_RC, group_.first_RC, group_.third_RC, true);
    const std::int64_t begin = group_.matrices.begin_of(index);
    __nv_bfloat16* const compute = bfloat16_data(args_.compute_weight_N);
    update_weight<<<num_blocks(size_), kThreads, 0, queue_>>>(
        {scalars_C_, direction, at(args_.weight_N, index), compute == nullptr ? nullptr : compute + begin,
         group_.matrices.is_decayed ? static_cast<float>(args_.decay) : 0.0F, size_});
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
    const SoapGroup group(args, matrices, state_begin);
    state_begin = group.place.end();
    if (matrices.count == 0) continue;
    const GroupStep step(stream, args, group);
    if (args.is_first) step.begin_bases();
    step.run();
  }
}

}  // namespace plenum::kernels::cuda
