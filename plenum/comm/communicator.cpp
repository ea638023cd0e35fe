#include "plenum/comm/communicator.h"

#include <numeric>

#include <fmt/format.h>

namespace plenum::comm {

Aborted::Aborted(Rank failed_rank, std::string_view reason)
    : std::runtime_error(fmt::format("rank {} failed: {}", failed_rank.value, reason)),
      failed_rank_(failed_rank) {}

std::unique_ptr<Communicator> Communicator::duplicate() {
  std::vector<std::size_t> members(size());
  std::iota(members.begin(), members.end(), std::size_t{0});
  return group(members);
}

void Communicator::issue_into(const tensor::WorkQueue&) {
  base::check(size() == 1, "an engine that works in the host's memory has no queue: {} members", size());
}

}  // namespace plenum::comm
