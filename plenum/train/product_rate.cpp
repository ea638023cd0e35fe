#include "plenum/train/product_rate.h"

#include "plenum/base/thread_pool.h"
#include "plenum/kernels/gemm_rate.h"

namespace plenum::train {

double measure_product_rate(const RunPlan& plan, const DeviceMemory& device_memory) {
  constexpr double kSeconds = 0.3;
  if (plan.program().device == tensor::Device::Cuda) {
    const bool has_room = device_memory.available_bytes() >= kernels::kCudaGemmRateBytes;
    return has_room ? kernels::measure_cuda_gemm_rate(kSeconds).fastest : 0;
  }
  base::ThreadPool pool(plan.mesh().num_ranks() * plan.program().num_threads);
  return kernels::measure_gemm_rate(pool, kSeconds).fastest;
}

}  // namespace plenum::train
