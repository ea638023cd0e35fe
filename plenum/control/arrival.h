#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "plenum/base/ids.h"
#include "plenum/control/connection.h"

namespace plenum::control {

/// A rank that looks for rank 0.
struct Arriving {
  base::Rank rank;
  std::uint32_t num_ranks = 1;
  std::string host;
  std::string run_directory;
  std::string secret;  ///< from the environment; where it is empty the file's is taken
  std::chrono::milliseconds limit{300'000};
  std::chrono::milliseconds handshake_limit{5000};
};

/// The connection to rank 0, once all ranks are there.
struct Arrived {
  Connection connection;
  std::string host;                     ///< of rank 0
  std::vector<Message> early_messages;  ///< what rank 0 has said since
};

/// Looks for the rendezvous file and follows it until rank 0 of this run answers: a file of an earlier run,
/// or somebody else at its port, is passed over. Throws UserError that says what it found when the time is
/// over, and at once where rank 0 refuses this rank or gives up.
Arrived arrive(const Arriving& who);

}  // namespace plenum::control
