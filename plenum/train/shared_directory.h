#pragma once

#include <chrono>
#include <string>

#include "plenum/comm/communicator.h"

namespace plenum::train {

/// Throws UserError, on all ranks alike, unless all see the files that the first writes into its directory,
/// which must be there. Called by all; a file system of several machines may take a while to show a new file.
void require_shared_directory(const std::string& directory, comm::Communicator& ranks,
                              std::chrono::seconds patience = std::chrono::seconds(60));

}  // namespace plenum::train
