#pragma once

#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace plenum::calibrate {

/// Calls work(rank) for each rank at the same time, each in a thread of its own, and returns when all have
/// returned. What the first of them threw is thrown from here.
template <typename Work>
void run_on_ranks(std::size_t num_ranks, const Work& work) {
  if (num_ranks == 1) return work(std::size_t{0});
  std::vector<std::exception_ptr> errors(num_ranks);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
      threads.emplace_back([&work, &errors, rank] {
        try {
          work(rank);
        } catch (...) {
          errors[rank] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace plenum::calibrate
