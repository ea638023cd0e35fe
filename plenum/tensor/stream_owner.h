#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "plenum/base/thread_pool.h"
#include "plenum/tensor/cuda_stream.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::tensor {

/// What a stream of a device works with: threads of the CPU, or a queue of the GPU.
class StreamOwner {
 public:
  /// Throws UserError where there is no GPU and one is asked for. A GPU needs no threads, and may be asked
  /// for a part of it.
  StreamOwner(Device device, std::size_t num_threads,
              std::shared_ptr<const CudaPartition> partition = nullptr) {
    if (device == Device::Cuda) {
      cuda_.emplace(std::move(partition));
    } else {
      pool_.emplace(num_threads);
    }
  }

  /// Borrows this and the scratch, a Byte tensor.
  Stream stream(const TensorView& scratch, const Precision& precision) {
    const std::span<std::byte> bytes = scratch.span<std::byte>();
    return cuda_ ? Stream(*cuda_, bytes, precision) : Stream(*pool_, bytes, precision);
  }

 private:
  std::optional<base::ThreadPool> pool_;
  std::optional<CudaStream> cuda_;
};

}  // namespace plenum::tensor
