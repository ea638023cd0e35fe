#pragma once

#include <cstddef>
#include <memory>

#include "plenum/tensor/cuda_memory.h"
#include "plenum/tensor/cuda_stream.h"

namespace plenum::comm::nccl {

/// Memory of the GPU, owned.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t num_bytes)
      : num_bytes_(num_bytes), data_(tensor::allocate_cuda(num_bytes)) {}
  ~DeviceBytes() { tensor::free_cuda(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  std::byte* data() const { return data_; }
  std::size_t num_bytes() const { return num_bytes_; }

 private:
  std::size_t num_bytes_;
  std::byte* data_;
};

/// By way of which a communicator without a queue reaches the host's memory: a queue of its own, and room on
/// both sides of the bus for what goes in and what comes out.
class HostStaging {
 public:
  HostStaging() = default;
  ~HostStaging() { stream_.drain(); }
  HostStaging(const HostStaging&) = delete;
  HostStaging& operator=(const HostStaging&) = delete;

  const tensor::CudaStream& stream() const { return stream_; }
  /// Takes it for an operation that brings and fetches so many bytes. One at a time.
  void enter(std::size_t in_bytes, std::size_t out_bytes);
  void leave() { is_taken_ = false; }

  /// Puts a copy from the host to device_in() into the queue.
  void bring(const std::byte* from, std::size_t num_bytes);
  /// Puts a copy of device_out() to where the host can read it into the queue.
  void fetch(std::size_t num_bytes);
  const std::byte* fetched() const { return out_->host.data(); }

  std::byte* device_in() const { return in_ ? in_->device.data() : nullptr; }
  std::byte* device_out() const { return out_ ? out_->device.data() : nullptr; }

 private:
  struct Room {
    explicit Room(std::size_t num_bytes) : device(num_bytes), host(num_bytes) {}
    DeviceBytes device;
    tensor::PinnedMemory host;
  };
  static void reserve(std::unique_ptr<Room>& room, std::size_t num_bytes);

  std::unique_ptr<Room> in_;
  std::unique_ptr<Room> out_;
  bool is_taken_ = false;
  tensor::CudaStream stream_;  ///< last: what it still does ends before its memory goes
};

}  // namespace plenum::comm::nccl
