#include <exception>
#include <limits>
#include <thread>

#include "plenum/comm/local/local_world.h"

#include "tests/comm/ranks.h"

namespace plenum::comm {

std::size_t most_ranks() {
  return std::numeric_limits<std::size_t>::max();
}

std::vector<std::string> run_ranks(std::size_t num_ranks, const std::function<void(Communicator&)>& work) {
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
