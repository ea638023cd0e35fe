#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace plenum::base {

/// Calls `action(index)` for index = 0 … count-1, on up to `num_threads` threads, in no order. After an
/// exception no further call begins, and the first one is thrown from here.
template <typename Action>
void parallel_for(std::size_t count, std::size_t num_threads, Action action) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::size_t index = next++; index < count; index = next++) action(index);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < num_threads && i < count; ++i) threads.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace plenum::base
