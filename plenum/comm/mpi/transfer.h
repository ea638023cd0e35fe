#pragma once

namespace plenum::comm::mpi {

/// How the elements of a collective travel once all members have agreed on it.
class Transfer {
 public:
  virtual ~Transfer() = default;

  /// Moves it on; true if something changed.
  virtual bool advance() = 0;
  virtual bool is_done() const = 0;
};

}  // namespace plenum::comm::mpi
