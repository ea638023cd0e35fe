#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "plenum/comm/contribution.h"
#include "plenum/comm/mpi/greeting.h"
#include "plenum/comm/mpi/staging.h"
#include "plenum/comm/mpi/task.h"
#include "plenum/comm/mpi/transfer.h"

namespace plenum::comm::mpi {

/// What the collectives of a group use one after another.
struct CollectiveRoom {
  explicit CollectiveRoom(const GroupLines& group) : lines(group), greeting(group) {}

  const GroupLines& lines;
  Greeting greeting;
  Staging staging;
  /// Of the same members, where the library does the reductions. To free it needs all members, so it stays
  /// until MPI is finalized.
  MPI_Comm library_group = MPI_COMM_NULL;
};

/// One collective of a group: members greet, see whether they agree, and exchange their elements.
class Collective final : public Task {
 public:
  explicit Collective(Contribution own) : own_(std::move(own)) {}

  /// Whether all members have come: then it needs nobody else to begin anything.
  bool have_all_come() const { return have_all_come_; }
  /// Moves it on, as the first of its group; true if something changed.
  bool advance(CollectiveRoom& room);

 private:
  /// Once all have greeted.
  void begin_transfer(CollectiveRoom& room);
  void finish_from_greetings(const CollectiveRoom& room);
  std::unique_ptr<Transfer> make_transfer(CollectiveRoom& room) const;

  Contribution own_;
  bool has_begun_ = false;
  std::atomic<bool> have_all_come_ = false;
  std::unique_ptr<Transfer> transfer_;
};

}  // namespace plenum::comm::mpi
