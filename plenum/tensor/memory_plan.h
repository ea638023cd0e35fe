#pragma once

#include <string>

#include "plenum/tensor/arena.h"
#include "plenum/tensor/memory_layout.h"
#include "plenum/tensor/precision.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::tensor {

/// Lays tensors out, and gives their views once there is an arena. The same code runs twice, first without an
/// arena to learn how large it must be, then with it: so what was planned is what is used.
class MemoryPlan {
 public:
  /// Without an arena the views have a shape but no memory: they count as left out.
  explicit MemoryPlan(Device device = Device::Cpu) : MemoryPlan(device, precision_of(device)) {}
  MemoryPlan(Device device, const Precision& precision) : device_(device), precision_(precision) {}
  /// Borrows the arena.
  explicit MemoryPlan(const Arena& arena) : MemoryPlan(arena, precision_of(arena.device())) {}
  MemoryPlan(const Arena& arena, const Precision& precision)
      : arena_(&arena), device_(arena.device()), precision_(precision) {}

  Device device() const { return device_; }
  const Precision& precision() const { return precision_; }

  /// The next tensor, of a purpose such as "parameters" or "activations".
  TensorView add(const std::string& purpose, DType dtype, Shape shape) {
    const Block block = layout_.add(purpose, dtype, shape);
    return arena_ == nullptr ? TensorView(nullptr, dtype, shape) : arena_->view(block);
  }
  /// The next tensor, of the type that tensors of its role have.
  TensorView add(const std::string& purpose, Role role, Shape shape) {
    return add(purpose, precision_.of(role), shape);
  }

  /// As MemoryLayout's: for memory whose use does not overlap in time.
  std::size_t mark() const { return layout_.mark(); }
  void rewind(std::size_t mark) { layout_.rewind(mark); }

  const MemoryLayout& layout() const { return layout_; }

 private:
  const Arena* arena_ = nullptr;
  Device device_ = Device::Cpu;
  Precision precision_;
  MemoryLayout layout_;
};

}  // namespace plenum::tensor
