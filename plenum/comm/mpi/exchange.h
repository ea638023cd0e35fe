#pragma once

#include "plenum/comm/contribution.h"
#include "plenum/comm/mpi/group_lines.h"
#include "plenum/comm/mpi/transfer.h"

namespace plenum::comm::mpi {

/// An all-gather, a broadcast or an all-to-all: elements that go from the member that has them straight to
/// those that want them.
class Exchange final : public Transfer {
 public:
  Exchange(const GroupLines& lines, const Contribution& own);

  bool advance() override { return requests_.test(); }
  bool is_done() const override { return requests_.is_empty(); }

 private:
  void gather(const GroupLines& lines, const Contribution& own);
  void broadcast(const GroupLines& lines, const Contribution& own);
  void exchange(const GroupLines& lines, const Contribution& own);

  Requests requests_;
};

}  // namespace plenum::comm::mpi
