#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "plenum/comm/local/local_world.h"

namespace plenum::comm {

/// Calls `work` once per rank, each on its own thread, and gives what each threw ("" for nothing).
inline std::vector<std::string> run_local_ranks(std::size_t num_ranks,
                                                const std::function<void(Communicator&)>& work) {
  local::LocalWorld world(num_ranks);
  std::vector<std::string> errors(num_ranks);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          const std::unique_ptr<Communicator> communicator = world.communicator(Rank::at(rank));
          work(*communicator);
        } catch (const std::exception& error) {
          errors[rank] = error.what();
        }
      });
    }
  }
  return errors;
}

}  // namespace plenum::comm
