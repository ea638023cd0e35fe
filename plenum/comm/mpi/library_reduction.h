#pragma once

#include <vector>

#include "plenum/comm/contribution.h"
#include "plenum/comm/mpi/requests.h"
#include "plenum/comm/mpi/transfer.h"

namespace plenum::comm::mpi {

/// Sums over all members as the MPI library does it, in its own order.
class LibraryReduction final : public Transfer {
 public:
  /// Whether the library can count that many elements at once.
  static bool can_do(const CollectiveShape& shape);

  LibraryReduction(MPI_Comm group, const Contribution& own);

  bool advance() override;
  bool is_done() const override { return requests_.is_empty(); }

 private:
  Elements destination_;
  std::vector<std::byte> result_;  ///< of a reduce-scatter, which may not overwrite part of its source
  std::vector<int> counts_;
  Requests requests_;
};

}  // namespace plenum::comm::mpi
