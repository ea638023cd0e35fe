// Stands for the other files of this folder in a build without MPI.
#include "plenum/base/check.h"
#include "plenum/comm/mpi/mpi_world.h"

namespace plenum::comm::mpi {
namespace {

constexpr const char* kObstacle =
    "this build has no MPI; install libopenmpi-dev and openmpi-bin (or libmpich-dev and mpich) and build "
    "again";

[[noreturn]] void refuse() {
  base::fail("ranks cannot be processes: {}", kObstacle);
}

}  // namespace

/// Nothing makes one here.
class WorldState {};

bool is_built() {
  return false;
}
std::optional<std::string> obstacle() {
  return kObstacle;
}
std::string library_name() {
  refuse();
}

MpiWorld::MpiWorld(MpiWorldOptions) {
  refuse();
}
MpiWorld::~MpiWorld() = default;
Rank MpiWorld::rank() const {
  refuse();
}
std::size_t MpiWorld::size() const {
  refuse();
}
std::unique_ptr<Communicator> MpiWorld::communicator() {
  refuse();
}
void MpiWorld::abort_here(Rank, std::string_view) {}

}  // namespace plenum::comm::mpi
