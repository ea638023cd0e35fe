#pragma once

#include <filesystem>
#include <string>

#include "plenum/comm/mpi/mpi_world.h"

namespace plenum::comm {

/// The world of this process, which main() makes.
struct MpiRanks {
  std::unique_ptr<mpi::MpiWorld> world;
  std::unique_ptr<Communicator> all;
  /// What on_abort was told, one line a call, appended to this file, which all ranks see.
  std::filesystem::path abort_news;
};

MpiRanks& mpi_ranks();

}  // namespace plenum::comm
