#pragma once

#include <cstddef>
#include <span>

#include "plenum/base/check.h"
#include "plenum/base/thread_pool.h"
#include "plenum/tensor/cuda_stream.h"
#include "plenum/tensor/device.h"
#include "plenum/tensor/precision.h"

namespace plenum::tensor {

/// Where kernels run: a device with its threads or its queue, and its scratch memory. Nothing of this is
/// global: each rank has its own. A CPU kernel has finished when its function returns; a kernel of the GPU
/// has then been put into the queue, behind everything that came before.
class Stream {
 public:
  /// A stream of the CPU. Borrows the pool and the scratch memory, which is divided evenly among its threads.
  Stream(base::ThreadPool& pool, std::span<std::byte> scratch,
         const Precision& precision = precision_of(Device::Cpu))
      : pool_(&pool), scratch_(scratch), precision_(precision) {}
  /// A stream of the GPU. Borrows the queue and the scratch memory, which lies on the GPU.
  Stream(const CudaStream& cuda, std::span<std::byte> scratch,
         const Precision& precision = precision_of(Device::Cuda))
      : cuda_(&cuda), scratch_(scratch), precision_(precision) {}

  Device device() const { return cuda_ == nullptr ? Device::Cpu : Device::Cuda; }
  /// What kernels on it compute with.
  const Precision& precision() const { return precision_; }
  base::ThreadPool& pool() const {
    base::check(pool_ != nullptr, "a stream of the GPU has no threads");
    return *pool_;
  }
  const CudaStream& cuda() const {
    base::check(cuda_ != nullptr, "a stream of the CPU has no queue");
    return *cuda_;
  }
  /// Until everything that was asked for is done.
  void wait() const {
    if (cuda_ != nullptr) cuda_->wait();
  }

  /// Of the CPU: what one thread may use within a task. Aligned to cache lines; as large as was asked for per
  /// thread.
  std::span<std::byte> scratch(std::size_t thread) const;
  /// Of the GPU: what one kernel may use. What comes behind it in the queue uses the same.
  std::span<std::byte> scratch() const { return scratch_; }
  /// What one kernel of the GPU, or one thread of the CPU, may use.
  std::size_t scratch_bytes() const;

 private:
  base::ThreadPool* pool_ = nullptr;
  const CudaStream* cuda_ = nullptr;
  std::span<std::byte> scratch_;
  Precision precision_;
};

}  // namespace plenum::tensor
