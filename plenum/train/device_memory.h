#pragma once

#include <cstdint>

#include "plenum/tensor/device.h"

namespace plenum::train {

/// The memory that a run takes of its device, counted from when this is made.
class DeviceMemory {
 public:
  /// Throws UserError, with the obstacle, where there is no GPU and one is asked for.
  explicit DeviceMemory(tensor::Device device);

  /// What a plan may still take; 0 if it could not be found out.
  std::uint64_t available_bytes() const;
  /// Of the CPU: the most that the process has had at a time. Of the GPU: what is gone of what was free, to
  /// whomever; a run gives nothing back before its end.
  std::uint64_t used_bytes() const;

 private:
  tensor::Device device_;
  std::uint64_t free_bytes_ = 0;  ///< of the GPU, when this was made
};

}  // namespace plenum::train
