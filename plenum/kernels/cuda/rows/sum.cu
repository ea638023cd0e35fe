#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/rows/sum.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

/// One block does it: there are a few thousand losses at most.
constexpr int kThreads = 1024;

__global__ void __launch_bounds__(kThreads)
    add_elements(const float* __restrict__ x_N, std::int64_t num_elements, double* __restrict__ sum) {
  double part = 0;
  for (std::int64_t i = threadIdx.x; i < num_elements; i += kThreads) part += double{x_N[i]};
  __shared__ BlockReductionOf<double> shared;
  const double total = block_sum(part, shared);
  if (threadIdx.x == 0) *sum += total;
}

}  // namespace

void add_sum(const tensor::Stream& stream, const AddSum& args) {
  if (args.x_N.num_elements() == 0) return;
  add_elements<<<1, kThreads, 0, stream.cuda().handle()>>>(args.x_N.data<float>(), args.x_N.num_elements(),
                                                           args.sum_1.data<double>());
  tensor::check_cuda(cudaGetLastError(), "add up elements");
}

}  // namespace plenum::kernels::cuda
