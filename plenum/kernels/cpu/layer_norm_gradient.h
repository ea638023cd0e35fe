#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plenum/kernels/cpu/layer_norm_row.h"
#include "plenum/kernels/cpu/row_dropout.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/rows.h"

namespace plenum::kernels::cpu {

/// The gradients of gamma and beta, and of the bias of what was normalised: sums over all rows, in an order
/// that does not depend on the threads. Rows are cut into blocks by their number alone; each block has a
/// partial sum of its own, and at the end the partial sums of each column are added in the order of the
/// blocks.
class LayerNormGradient {
 public:
  /// Partial sums lie in the scratch memory of thread 0, row buffers in that of the thread that uses them.
  LayerNormGradient(const tensor::Stream& stream, std::int64_t num_rows, std::int64_t width)
      : stream_(stream),
        num_rows_(num_rows),
        width_(width),
        num_blocks_(std::min(kMostBlocks, (num_rows + kLeastRows - 1) / kLeastRows)),
        partial_sums_(reinterpret_cast<float*>(stream.scratch(0).data() + RowDropout::buffer_bytes(width))) {}

  /// Sums over the rows of one block, rows of D.
  struct Sums {
    float* dgamma;
    float* dbeta;
    float* db;
  };

  /// Calls body(row, sums, thread), which adds to the sums, for all rows.
  template <typename Body>
  void for_each_row(Body body) const {
    stream_.pool().run(static_cast<std::size_t>(num_blocks_), [&](std::size_t task, std::size_t thread) {
      const auto block = static_cast<std::int64_t>(task);
      const Sums sums = sums_of(block);
      std::fill(sums.dgamma, sums.dgamma + kSums * width_, 0.0F);
      for (std::int64_t row = first_row(block); row < first_row(block + 1); ++row) body(row, sums, thread);
    });
  }

  /// Adds the sums over all blocks to dgamma and dbeta, and to db if it is not null.
  void add_to(float* dgamma, float* dbeta, float* db) const {
    for (std::int64_t block = 0; block < num_blocks_; ++block) {
      const Sums sums = sums_of(block);
      for (std::int64_t i = 0; i < width_; ++i) dgamma[i] += sums.dgamma[i];
      for (std::int64_t i = 0; i < width_; ++i) dbeta[i] += sums.dbeta[i];
      if (db == nullptr) continue;
      for (std::int64_t i = 0; i < width_; ++i) db[i] += sums.db[i];
    }
  }

 private:
  static constexpr std::int64_t kSums = workspace::kMaxLayerNormSums;
  static constexpr std::int64_t kMostBlocks = workspace::kMostLayerNormBlocks;
  static constexpr std::int64_t kLeastRows = 8;

  Sums sums_of(std::int64_t block) const {
    float* const first = partial_sums_ + kSums * block * width_;
    return {.dgamma = first, .dbeta = first + width_, .db = first + 2 * width_};
  }
  std::int64_t first_row(std::int64_t block) const { return num_rows_ * block / num_blocks_; }

  const tensor::Stream& stream_;
  std::int64_t num_rows_;
  std::int64_t width_;
  std::int64_t num_blocks_;
  float* partial_sums_;
};

}  // namespace plenum::kernels::cpu
