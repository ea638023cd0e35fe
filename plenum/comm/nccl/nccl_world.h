#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "plenum/comm/communicator.h"

namespace plenum::comm::nccl {

class WorldState;

/// Why ranks cannot communicate through NCCL here, without a look at the GPU; nothing where they can.
std::optional<std::string> obstacle();

/// Name and version. Throws UserError in a build without NCCL.
std::string library_name();

/// By which the ranks of a world find each other: made by one of them and told to all.
using Id = std::array<std::byte, 128>;
Id make_id();

/// Ranks that are processes, each with a GPU of its own.
///
/// Once a communicator was told into which queue to issue, it works in the GPU's memory and everything is
/// complete when it is put in. Before that it works in the host's memory by way of the GPU: for the few words
/// that processes say to each other between steps. Sums have one order (NCCL's rings, without the switches'
/// own arithmetic, unless the environment asks NCCL for something else), so the same ranks get the same bytes
/// twice, but not those of other engines.
///
/// Messages have no tags: two members receive from each other in the order of the sends. NCCL does not
/// compare what members bring, so a collective on which they disagree hangs or computes nonsense.
class NcclWorld {
 public:
  /// Told when this process aborts the world: NCCL does not tell the others.
  using OnAbort = std::function<void(Rank failed_rank, std::string_view reason)>;

  /// Waits until all ranks are there. Throws UserError if NCCL cannot be used.
  NcclWorld(Rank rank, std::size_t num_ranks, const Id& id, OnAbort on_abort = {});
  ~NcclWorld();
  NcclWorld(const NcclWorld&) = delete;
  NcclWorld& operator=(const NcclWorld&) = delete;

  /// A communicator of all ranks, the same at every call.
  Communicator& communicator();
  /// Ends all communication of this process, as another rank's failure does. From any thread.
  void abort_here(Rank failed_rank, std::string_view reason);

 private:
  std::shared_ptr<WorldState> state_;
  std::unique_ptr<Communicator> all_;
};

}  // namespace plenum::comm::nccl
