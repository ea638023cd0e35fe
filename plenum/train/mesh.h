#pragma once

#include <cstddef>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/ids.h"
#include "plenum/describe/model_description.h"

namespace plenum::train {

/// How the ranks of a run hold the model: so many replicas of it, each in a pipeline of `depth` places, each
/// of which `num_slices` ranks hold together. Slices count first, then places, then replicas.
class Mesh {
 public:
  explicit Mesh(std::size_t num_ranks, std::size_t num_slices = 1, std::size_t depth = 1)
      : num_ranks_(num_ranks), num_slices_(num_slices), depth_(depth) {
    base::require(
        num_slices > 0 && depth > 0 && num_ranks % (num_slices * depth) == 0,
        "--ranks must be a multiple of {}, since so many ranks hold a model together: --ranks {}{}{}",
        depth == 1        ? "--tp"
        : num_slices == 1 ? "--pp"
                          : "--tp times --pp",
        num_ranks, num_slices == 1 && depth > 1 ? "" : fmt::format(" --tp {}", num_slices),
        depth == 1 ? "" : fmt::format(" --pp {}", depth));
  }

  std::size_t num_ranks() const { return num_ranks_; }
  std::size_t num_slices() const { return num_slices_; }
  /// Places of a replica's pipeline.
  std::size_t depth() const { return depth_; }
  std::size_t ranks_per_replica() const { return num_slices_ * depth_; }
  std::size_t num_replicas() const { return num_ranks_ / ranks_per_replica(); }
  /// Ranks that a schedule has: the slices of a place are one.
  std::size_t num_places() const { return num_ranks_ / num_slices_; }
  /// Which a schedule calls a rank: replica * depth + place in its pipeline.
  base::Rank place_of(base::Rank rank) const { return base::Rank::at(rank.index() / num_slices_); }
  base::Rank replica_of(base::Rank rank) const { return base::Rank::at(rank.index() / ranks_per_replica()); }
  /// Its place among the ranks of its replica.
  std::size_t index_in_replica(base::Rank rank) const { return rank.index() % ranks_per_replica(); }
  describe::TensorParallel slice_of(base::Rank rank) const {
    return {.index = rank.index() % num_slices_, .size = num_slices_};
  }

 private:
  std::size_t num_ranks_;
  std::size_t num_slices_;
  std::size_t depth_;
};

}  // namespace plenum::train
