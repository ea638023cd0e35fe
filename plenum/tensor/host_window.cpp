#include "plenum/tensor/host_window.h"

#include <algorithm>

#include "plenum/tensor/cuda_memory.h"

namespace plenum::tensor {

HostWindow::HostWindow(const Stream& stream) : stream_(stream) {}

/// Room for the elements from `first` on, of so many.
std::span<float> HostWindow::piece_of(std::size_t first, std::size_t count) const {
  return {reinterpret_cast<float*>(memory_.data()), std::min(count - first, kBytes / sizeof(float))};
}

void HostWindow::read(std::span<const float> values,
                      base::FunctionRef<void(std::span<const float>)> take) const {
  for (std::size_t first = 0; first < values.size();) {
    const std::span<float> piece = piece_of(first, values.size());
    copy_cuda(stream_.cuda(), values.data() + first, piece.data(), piece.size_bytes());
    stream_.wait();
    take(piece);
    first += piece.size();
  }
}

void HostWindow::write(std::span<float> values,
                       base::FunctionRef<void(std::size_t, std::span<float>)> make) const {
  for (std::size_t first = 0; first < values.size();) {
    const std::span<float> piece = piece_of(first, values.size());
    make(first, piece);
    copy_cuda(stream_.cuda(), piece.data(), values.data() + first, piece.size_bytes());
    stream_.wait();
    first += piece.size();
  }
}

}  // namespace plenum::tensor
