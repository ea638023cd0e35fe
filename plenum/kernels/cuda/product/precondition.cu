#include <algorithm>

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/product/float_matmul.h"
#include "plenum/kernels/cuda/product/precondition.h"
#include "plenum/tensor/cuda_check.h"
#include "plenum/workspace/kronecker.h"

// Gradients of one shape that lie at equal distances, with everything that belongs to them, are worked on at
// once: blockIdx.y is the map. Products are in TF32 (docs/decisions/kfac.md).

namespace plenum::kernels::cuda {
namespace {

using workspace::kPreconditionedBlock;

constexpr int kThreads = 256;

/// Where the matrices of maps lie: those of the first, and how far it is from one to the next.
struct Distances {
  std::int64_t gradient = 0, inverse_a = 0, inverse_b = 0, state = 0;

  friend bool operator==(const Distances&, const Distances&) = default;
};

template <typename Element>
std::int64_t distance(const Element* from, const Element* to) {
  return (static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(to)) -
          static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(from))) /
         static_cast<std::int64_t>(sizeof(Element));
}

Distances distances(const PreconditionedMap& from, const PreconditionedMap& to) {
  return {
      .gradient = distance<float>(from.gradient_ED.data<float>(), to.gradient_ED.data<float>()),
      .inverse_a = distance(from.inverse_a_DD.data<float>(), to.inverse_a_DD.data<float>()),
      .inverse_b = distance(from.inverse_b_EE.data<float>(), to.inverse_b_EE.data<float>()),
      .state = distance(from.state_C.data<double>(), to.state_C.data<double>()),
  };
}

/// Whether matrices lie one behind the other, as the library wants them.
bool are_forward(const Distances& apart) {
  return apart.gradient > 0 && apart.inverse_a >= 0 && apart.inverse_b >= 0;
}

/// How many of the first maps of a list can be worked on at once.
std::size_t num_at_once(std::span<const PreconditionedMap> maps) {
  const tensor::Shape& shape = maps.front().gradient_ED.shape();
  const auto most = std::min(
      maps.size(), static_cast<std::size_t>(workspace::num_preconditioned_at_once(shape.num_elements())));
  const auto is_alike = [&](std::size_t i) {
    if (maps[i].gradient_ED.shape() != shape) return false;
    const Distances apart = distances(maps[i - 1], maps[i]);
    return are_forward(apart) && (i == 1 || apart == distances(maps[0], maps[1]));
  };
  std::size_t count = 1;
  while (count < most && is_alike(count)) ++count;
  return count;
}

/// Gradients, what was made of them side by side, and sums of squares: of every map, and of all its blocks,
/// that of the gradient and that of the product.
struct Norms {
  float* gradient;
  std::int64_t gradient_distance;
  const float* product;
  std::int64_t num_elements;
  double* sums_MB2;
  const double* state_C;
  std::int64_t state_distance;

  __device__ float* own_gradient() const { return gradient + blockIdx.y * gradient_distance; }
  __device__ const float* own_product() const { return product + blockIdx.y * num_elements; }
  __device__ double* own_sums() const { return sums_MB2 + std::int64_t{2} * blockIdx.y * gridDim.x; }
  __device__ std::int64_t begin() const { return std::int64_t{blockIdx.x} * kPreconditionedBlock; }
  __device__ std::int64_t end() const { return min(begin() + kPreconditionedBlock, num_elements); }
};

__global__ void __launch_bounds__(kThreads) sum_squares(Norms norms) {
  const float* const gradient = norms.own_gradient();
  const float* const product = norms.own_product();
  double before = 0;
  double after = 0;
  for (std::int64_t i = norms.begin() + threadIdx.x; i < norms.end(); i += kThreads) {
    before += double{gradient[i]} * double{gradient[i]};
    after += double{product[i]} * double{product[i]};
  }
  __shared__ BlockReductionOf<double> shared_before;
  __shared__ BlockReductionOf<double> shared_after;
  before = block_sum(before, shared_before);
  after = block_sum(after, shared_after);
  if (threadIdx.x == 0) {
    norms.own_sums()[2 * blockIdx.x] = before;
    norms.own_sums()[2 * blockIdx.x + 1] = after;
  }
}

/// Every block of a map adds up the same sums in the same order.
__global__ void __launch_bounds__(kThreads) rescale(Norms norms) {
  const double* const state_C = norms.state_C + blockIdx.y * norms.state_distance;
  if (state_C[index_of(InverseState::IsReady)] == 0) return;
  const double* const sums_B2 = norms.own_sums();
  double before = 0;
  double after = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) {
    before += sums_B2[2 * i];
    after += sums_B2[2 * i + 1];
  }
  __shared__ BlockReductionOf<double> shared_before;
  __shared__ BlockReductionOf<double> shared_after;
  const auto scale =
      static_cast<float>(sqrt(block_sum(before, shared_before) / block_sum(after, shared_after)));
  if (!(isfinite(scale) && scale > 0)) return;
  float* const gradient = norms.own_gradient();
  const float* const product = norms.own_product();
  for (std::int64_t i = norms.begin() + threadIdx.x; i < norms.end(); i += kThreads)
    gradient[i] = scale * product[i];
}

/// By the inverses of all maps, which are alike.
void precondition_alike(const tensor::Stream& stream, std::span<const PreconditionedMap> maps, float* room) {
  const PreconditionedMap& first = maps.front();
  const std::int64_t E = first.gradient_ED.size(0);
  const std::int64_t D = first.gradient_ED.size(1);
  if (E * D == 0) return;
  const auto count = static_cast<std::int64_t>(maps.size());
  const Distances apart = maps.size() > 1 ? distances(maps[0], maps[1]) : Distances{};
  const std::int64_t product_distance = maps.size() > 1 ? E * D : 0;
  const auto num_blocks = workspace::num_preconditioned_blocks(E * D);
  auto* const sums_MB2 = reinterpret_cast<double*>(room);
  float* const half =
      room + 2 * count * num_blocks * static_cast<std::int64_t>(sizeof(double) / sizeof(float));
  float* const whole = half + count * E * D;
  float* const gradient = first.gradient_ED.data<float>();
  float_matmul(stream,
               {.m = E,
                .n = D,
                .k = D,
                .a = {.data = gradient, .stride = D, .batch_stride = apart.gradient},
                .b = {.data = first.inverse_a_DD.data<float>(), .stride = D, .batch_stride = apart.inverse_a},
                .c = half,
                .c_stride = D,
                .precision = FloatPrecision::Reduced,
                .num_products = count,
                .c_batch_stride = product_distance});
  float_matmul(stream,
               {.m = E,
                .n = D,
                .k = E,
                .a = {.data = first.inverse_b_EE.data<float>(), .stride = E, .batch_stride = apart.inverse_b},
                .b = {.data = half, .stride = D, .batch_stride = product_distance},
                .c = whole,
                .c_stride = D,
                .precision = FloatPrecision::Reduced,
                .num_products = count,
                .c_batch_stride = product_distance});
  const Norms norms = {.gradient = gradient,
                       .gradient_distance = apart.gradient,
                       .product = whole,
                       .num_elements = E * D,
                       .sums_MB2 = sums_MB2,
                       .state_C = first.state_C.data<double>(),
                       .state_distance = apart.state};
  const dim3 blocks(static_cast<unsigned>(num_blocks), static_cast<unsigned>(count));
  cudaStream_t queue = stream.cuda().handle();
  sum_squares<<<blocks, kThreads, 0, queue>>>(norms);
  rescale<<<blocks, kThreads, 0, queue>>>(norms);
  tensor::check_cuda(cudaGetLastError(), "rescale preconditioned gradients");
}

}  // namespace

void precondition(const tensor::Stream& stream, const Precondition& args) {
  check_scratch(stream, workspace::kronecker_scratch_bytes(tensor::Device::Cuda));
  for (std::span<const PreconditionedMap> left = args.maps; !left.empty();) {
    const std::size_t count = num_at_once(left);
    precondition_alike(stream, left.first(count), args.room.data<float>());
    left = left.subspan(count);
  }
}

}  // namespace plenum::kernels::cuda
