#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plenum/kernels/cpu/layer_norm_row.h"
#include "plenum/kernels/cpu/row_dropout.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels::cpu {

/// The gradients of gamma and beta: sums over all rows, in an order that does not depend on the threads. Rows
/// are cut into blocks by their number alone; each block has a partial sum of its own, and at the end the
/// partial sums of each column are added in the order of the blocks.
class LayerNormGradient {
 public:
  /// Partial sums lie in the scratch memory of thread 0, row buffers in that of the thread that uses them.
  LayerNormGradient(const tensor::Stream& stream, std::int64_t num_rows, std::int64_t width)
      : stream_(stream),
        num_rows_(num_rows),
        width_(width),
        num_blocks_(std::min(kMostBlocks, (num_rows + kLeastRows - 1) / kLeastRows)),
        partial_sums_(reinterpret_cast<float*>(stream.scratch(0).data() + RowDropout::buffer_bytes(width))) {}

  static std::size_t scratch_bytes(std::int64_t width) {
    return RowDropout::buffer_bytes(width) +
           static_cast<std::size_t>(2 * kMostBlocks * width) * sizeof(float);
  }

  /// Calls body(row, dgamma, dbeta, thread), which adds to dgamma and dbeta, for all rows.
  template <typename Body>
  void for_each_row(Body body) const {
    stream_.pool().run(static_cast<std::size_t>(num_blocks_), [&](std::size_t task, std::size_t thread) {
      const auto block = static_cast<std::int64_t>(task);
      float* const dgamma = partial_sums_ + 2 * block * width_;
      float* const dbeta = dgamma + width_;
      std::fill(dgamma, dgamma + 2 * width_, 0.0F);
      for (std::int64_t row = first_row(block); row < first_row(block + 1); ++row) {
        body(row, dgamma, dbeta, thread);
      }
    });
  }

  /// Adds the sums over all blocks to dgamma and dbeta.
  void add_to(float* dgamma, float* dbeta) const {
    for (std::int64_t block = 0; block < num_blocks_; ++block) {
      const float* const partial = partial_sums_ + 2 * block * width_;
      for (std::int64_t i = 0; i < width_; ++i) dgamma[i] += partial[i];
      for (std::int64_t i = 0; i < width_; ++i) dbeta[i] += partial[width_ + i];
    }
  }

 private:
  static constexpr std::int64_t kMostBlocks = 64;  // enough for threads to share evenly, and for few sums
  static constexpr std::int64_t kLeastRows = 8;

  std::int64_t first_row(std::int64_t block) const { return num_rows_ * block / num_blocks_; }

  const tensor::Stream& stream_;
  std::int64_t num_rows_;
  std::int64_t width_;
  std::int64_t num_blocks_;
  float* partial_sums_;
};

}  // namespace plenum::kernels::cpu
