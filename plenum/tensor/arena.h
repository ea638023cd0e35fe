#pragma once

#include <cstddef>
#include <span>

#include "plenum/tensor/device.h"
#include "plenum/tensor/memory_layout.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::tensor {

/// The memory that a MemoryLayout describes, on one device, allocated at once and zero at first.
class Arena {
 public:
  /// Throws UserError, with the number, if the device does not give that much.
  explicit Arena(std::size_t num_bytes, Device device = Device::Cpu);
  explicit Arena(const MemoryLayout& layout, Device device = Device::Cpu)
      : Arena(layout.num_bytes(), device) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Device device() const { return device_; }
  std::size_t num_bytes() const { return num_bytes_; }
  TensorView view(const Block& block) const;

 private:
  std::byte* data_ = nullptr;
  std::size_t num_bytes_ = 0;
  Device device_ = Device::Cpu;
};

}  // namespace plenum::tensor
