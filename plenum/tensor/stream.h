#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plenum/base/thread_pool.h"

namespace plenum::tensor {

enum class Device : std::uint8_t { Cpu, Cuda };

/// Where kernels run: a device with its threads and its scratch memory. Nothing of this is global: each rank
/// has its own. A CPU kernel has finished when its function returns.
class Stream {
 public:
  /// A stream of the CPU. Borrows the pool and the scratch memory, which is divided evenly among its threads.
  Stream(base::ThreadPool& pool, std::span<std::byte> scratch) : pool_(pool), scratch_(scratch) {}

  Device device() const { return Device::Cpu; }
  base::ThreadPool& pool() const { return pool_; }

  /// What one thread may use within a task. Aligned to cache lines; as large as was asked for per thread.
  std::span<std::byte> scratch(std::size_t thread) const;
  std::size_t scratch_bytes_per_thread() const;

 private:
  base::ThreadPool& pool_;
  std::span<std::byte> scratch_;
};

}  // namespace plenum::tensor
