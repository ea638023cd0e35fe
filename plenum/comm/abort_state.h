#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "plenum/comm/communicator.h"

namespace plenum::comm {

/// Whether a world was aborted, by whom and why.
class AbortState {
 public:
  /// False if someone was faster: the first failure counts.
  bool abort_all(Rank failed_rank, std::string_view reason) {
    const std::lock_guard lock(mutex_);
    if (is_aborted_) return false;
    failed_rank_ = failed_rank;
    reason_ = reason;
    is_aborted_ = true;
    return true;
  }

  bool is_aborted() const { return is_aborted_; }

  void throw_if_aborted() const {
    if (!is_aborted_) return;
    const std::lock_guard lock(mutex_);
    throw Aborted(failed_rank_, reason_);
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> is_aborted_ = false;
  Rank failed_rank_;
  std::string reason_;
};

}  // namespace plenum::comm
