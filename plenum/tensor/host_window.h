#pragma once

#include <cstddef>
#include <span>

#include "plenum/base/function_ref.h"
#include "plenum/tensor/cuda_stream.h"
#include "plenum/tensor/stream.h"

namespace plenum::tensor {

/// Lets the host read and write what lies in a GPU's memory, piece by piece through a few megabytes of its
/// own, however much it is.
class HostWindow {
 public:
  /// Of a stream of the GPU, which it borrows.
  explicit HostWindow(const Stream& stream);

  /// Hands values of the GPU to `take`, in order. Waits for everything in the stream.
  void read(std::span<const float> values, base::FunctionRef<void(std::span<const float>)> take) const;
  /// Overwrites values of the GPU by what `make(first, piece)` makes: all elements of `piece`, which are
  /// those from `first` on.
  void write(std::span<float> values, base::FunctionRef<void(std::size_t, std::span<float>)> make) const;

 private:
  static constexpr std::size_t kBytes = std::size_t{16} << 20;

  std::span<float> piece_of(std::size_t first, std::size_t count) const;

  const Stream& stream_;
  PinnedMemory memory_{kBytes};
};

}  // namespace plenum::tensor
