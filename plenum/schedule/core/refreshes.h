#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// The refreshes of a schedule's second-order statistics: in which steps of the cycle they are taken, layer
/// by layer, and how many places in memory they need, which they take in turn, each from its first statistics
/// to the last piece of an inversion.
class Refreshes {
 public:
  explicit Refreshes(const Schedule& schedule);

  /// Of any layer; at least 1.
  std::size_t num_places() const { return num_places_; }
  /// Whether a step of training takes statistics of the layer.
  bool takes_statistics(std::uint64_t step, LayerId layer) const {
    return takes_statistics_[layer.index()][static_cast<std::size_t>(step % num_steps_)];
  }
  /// Which memory the refresh of a step of training has, of a step that takes statistics of the layer.
  std::size_t place_of(std::uint64_t step, LayerId layer) const;
  /// Whether inversions, roots or bases are made in several pieces.
  bool has_pieces() const { return has_pieces_; }
  /// The greatest number of steps between statistics and work on them.
  std::size_t max_age() const { return max_age_; }
  /// Whether no work on statistics waits once so many steps are done: a run that resumes there needs
  /// nothing of the steps before but inverses.
  bool is_drained(std::uint64_t num_steps_done) const { return is_drained_[num_steps_done % num_steps_]; }
  bool is_ever_drained() const { return std::ranges::find(is_drained_, true) != is_drained_.end(); }

 private:
  std::size_t num_steps_;
  std::vector<std::vector<bool>> takes_statistics_;  ///< by layer and step of the cycle
  std::vector<bool> is_drained_;                     ///< by the steps of the cycle that are done
  bool has_pieces_ = false;
  std::size_t max_age_ = 0;
  std::size_t num_places_ = 1;
};

}  // namespace plenum::schedule
