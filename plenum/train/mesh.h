#pragma once

#include <cstddef>

#include "plenum/base/check.h"
#include "plenum/base/ids.h"
#include "plenum/describe/model_description.h"

namespace plenum::train {

/// How the ranks of a run hold the model: so many replicas of it, each of which `num_slices` ranks hold
/// together. Rank r is slice r mod num_slices of replica r / num_slices.
class Mesh {
 public:
  Mesh(std::size_t num_ranks, std::size_t num_slices) : num_ranks_(num_ranks), num_slices_(num_slices) {
    base::require(num_slices > 0 && num_ranks % num_slices == 0,
                  "--ranks must be a multiple of --tp, since so many ranks hold a model together: --ranks {} "
                  "--tp {}",
                  num_ranks, num_slices);
  }

  std::size_t num_ranks() const { return num_ranks_; }
  std::size_t num_slices() const { return num_slices_; }
  std::size_t num_replicas() const { return num_ranks_ / num_slices_; }
  /// Which a schedule calls a rank.
  base::Rank replica_of(base::Rank rank) const { return base::Rank::at(rank.index() / num_slices_); }
  describe::TensorParallel slice_of(base::Rank rank) const {
    return {.index = rank.index() % num_slices_, .size = num_slices_};
  }

 private:
  std::size_t num_ranks_;
  std::size_t num_slices_;
};

}  // namespace plenum::train
