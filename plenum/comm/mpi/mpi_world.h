#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "plenum/comm/communicator.h"

namespace plenum::comm::mpi {

class WorldState;

/// Whether this build has MPI.
bool is_built();
/// Why MPI cannot be used and what to do about it; none where it can.
std::optional<std::string> obstacle();
/// Name and version of the MPI library, as it says itself. Throws UserError in a build without MPI.
std::string library_name();

enum class Reduction : std::uint8_t {
  Direct,  ///< slices go to their owner, who adds them in the order of the members: the bytes of comm/local
  Library  ///< MPI_Iallreduce and MPI_Ireduce_scatter: the library's own order and algorithms
};

struct MpiWorldOptions {
  Reduction reduction = Reduction::Direct;
  /// Told once, by the thread that calls it, when this process calls abort_all(): MPI does not carry the
  /// news, something else has to, to abort_here() of all others.
  std::function<void(Rank failed_rank, std::string_view reason)> on_abort = {};
};

/// Ranks that are processes, connected by MPI. There is one world in a process.
///
/// Reductions are exchanges of slices in the order of the members, so they give the same bytes as comm/local
/// on the same number of ranks. Every collective begins with a short greeting of all members, which carries
/// what they must agree on (and small collectives whole), so that all of them see the same InternalError
/// where kind, tag, root, type or sizes differ, and can go on. Messages carry tag, type and size, too:
/// whoever receives one that does not fit gets InternalError.
///
/// Progress is made inside wait() and test(): each helps on all that this process has started, whoever
/// started it. Threads that wait spin for a moment, then sleep between looks, so they may share a core with
/// one that computes. A send that is dropped before it is done cannot be withdrawn and aborts all
/// communication.
///
/// After an abort this process makes no more MPI calls, so that nothing moves in buffers that are then freed.
class MpiWorld {
 public:
  /// Initialises MPI for several threads. Throws UserError where that cannot be done, and InternalError where
  /// it was done before.
  explicit MpiWorld(MpiWorldOptions options = {});
  /// Finalizes MPI once all ranks have come to this point. Does not wait, and leaves MPI as it is, after an
  /// abort and while an exception is thrown: the launcher then takes the process for one that failed.
  ~MpiWorld();

  Rank rank() const;
  std::size_t size() const;

  /// Another communicator of all ranks; all call this in the same order. It must not communicate when the
  /// world is gone.
  std::unique_ptr<Communicator> communicator();

  /// News from outside that a rank failed: ends all communication of this process as abort_all() does,
  /// without telling on_abort. May be called by any thread.
  void abort_here(Rank failed_rank, std::string_view reason);

 private:
  std::shared_ptr<WorldState> state_;
};

}  // namespace plenum::comm::mpi
