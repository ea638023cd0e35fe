#include "plenum/comm/nccl/nccl_world.h"

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plenum/comm/nccl/nccl_communicator.h"

namespace plenum::comm::nccl {
namespace {

/// Makes NCCL sum in the same order every time, unless the user asked it for something else. To be called
/// before NCCL is.
void fix_algorithms() {
  constexpr int kKeepTheUsers = 0;
  ::setenv("NCCL_ALGO", "Ring", kKeepTheUsers);
  ::setenv("NCCL_NVLS_ENABLE", "0", kKeepTheUsers);
}

}  // namespace

std::optional<std::string> obstacle() {
  return std::nullopt;
}

std::string library_name() {
  int version = 0;
  check_nccl(::ncclGetVersion(&version), "tell its version");
  return fmt::format("NCCL {}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}

Id make_id() {
  fix_algorithms();
  ncclUniqueId id;
  check_nccl(::ncclGetUniqueId(&id), "begin to communicate");
  Id bytes;
  static_assert(sizeof(id) == sizeof(bytes));
  std::memcpy(bytes.data(), &id, sizeof(id));
  return bytes;
}

NcclWorld::NcclWorld(Rank rank, std::size_t num_ranks, const Id& id, OnAbort on_abort)
    : state_(std::make_shared<WorldState>(std::move(on_abort))) {
  fix_algorithms();
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < num_ranks; ++i) ranks.push_back(Rank::at(i));
  all_ = std::make_unique<NcclCommunicator>(state_, std::move(ranks), rank.index(), id);
}

NcclWorld::~NcclWorld() = default;

Communicator& NcclWorld::communicator() {
  return *all_;
}

void NcclWorld::abort_here(Rank failed_rank, std::string_view reason) {
  state_->abort_here(failed_rank, reason);
}

}  // namespace plenum::comm::nccl
