#include "plenum/base/check.h"
#include "plenum/comm/nccl/nccl_world.h"

namespace plenum::comm::nccl {
namespace {

constexpr const char* kObstacle =
    "this build has no NCCL; install it with the headers, and build with CUDA (make build PRESET=cuda)";

}  // namespace

class WorldState {};

std::optional<std::string> obstacle() {
  return kObstacle;
}

std::string library_name() {
  base::fail("{}", kObstacle);
}

Id make_id() {
  base::fail("GPUs cannot train together: {}", kObstacle);
}

NcclWorld::NcclWorld(Rank, std::size_t, const Id&, OnAbort) {
  base::fail("GPUs cannot train together: {}", kObstacle);
}

NcclWorld::~NcclWorld() = default;

Communicator& NcclWorld::communicator() {
  return *all_;
}

void NcclWorld::abort_here(Rank, std::string_view) {}

}  // namespace plenum::comm::nccl
