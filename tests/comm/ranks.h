#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plenum/comm/communicator.h"

namespace plenum::comm {

// What every engine must do is tested once, in comm/contract, and linked with each engine's own way to run
// ranks.

/// How many ranks run_ranks() can have.
std::size_t most_ranks();

/// Calls `work` once per rank, at the same time, and gives what each threw ("" for nothing). Where ranks are
/// processes, all of them call this, and all get the answer.
std::vector<std::string> run_ranks(std::size_t num_ranks, const std::function<void(Communicator&)>& work);

}  // namespace plenum::comm
