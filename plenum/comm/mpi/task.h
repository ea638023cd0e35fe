#pragma once

#include <atomic>
#include <exception>
#include <utility>

namespace plenum::comm::mpi {

/// Something that a channel has under way. It is moved on by whichever thread holds the channel; the thread
/// that waits for it sees when it is done.
class Task {
 public:
  virtual ~Task() = default;

  bool is_done() const { return is_done_.load(std::memory_order_acquire); }
  /// Once it is done: throws what went wrong.
  void conclude() const {
    if (error_) std::rethrow_exception(error_);
  }

  void finish(std::exception_ptr error = nullptr) {
    error_ = std::move(error);
    is_done_.store(true, std::memory_order_release);
  }

 private:
  std::exception_ptr error_;
  std::atomic<bool> is_done_ = false;
};

}  // namespace plenum::comm::mpi
