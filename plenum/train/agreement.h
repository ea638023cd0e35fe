#pragma once

#include "plenum/comm/communicator.h"

namespace plenum::train {

/// Lets the processes of a run decide together between steps, where no step's outcome tells all of them what
/// one knows. All ask for the same decisions in the same order.
class Agreement {
 public:
  /// Borrows a communicator of all processes, which serves nothing else.
  explicit Agreement(comm::Communicator& processes) : processes_(processes) {}

  /// Whether any process wishes it: the same answer in all of them. Waits for all.
  bool is_wished_by_any(bool wish);

 private:
  comm::Communicator& processes_;
};

}  // namespace plenum::train
