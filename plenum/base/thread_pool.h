#pragma once

#include <cstddef>
#include <memory>

#include "plenum/base/function_ref.h"

namespace plenum::base {

/// A fixed set of threads that share the tasks of one caller at a time.
///
/// Which thread does which task is left to chance, so a task must not depend on it: whoever wants the same
/// bytes for any number of threads cuts the work into tasks by its size alone and gives every sum one task.
class ThreadPool {
 public:
  /// What a task gets: its number, and the thread that runs it, 0 ... num_threads() - 1, for scratch memory.
  using Task = FunctionRef<void(std::size_t task, std::size_t thread)>;

  /// `num_threads` counts the caller, which works too; at least 1. Throws UserError if the system does not
  /// give as many.
  explicit ThreadPool(std::size_t num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t num_threads() const { return num_threads_; }

  /// Calls task(0, .) ... task(count - 1, .) and returns when all have returned. After an exception no
  /// further task begins, and the first one is thrown from here. Not to be called from within a task.
  void run(std::size_t count, Task task);

 private:
  class Workers;

  std::size_t num_threads_;
  std::unique_ptr<Workers> workers_;
};

}  // namespace plenum::base
