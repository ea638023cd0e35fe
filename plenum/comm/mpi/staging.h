#pragma once

#include <cstddef>
#include <memory>

namespace plenum::comm::mpi {

/// Memory of a communicator in which slices arrive that are added there. It is taken when it is first needed
/// and kept; collectives of a communicator use it one after another.
class Staging {
 public:
  /// How many pieces of a slice may be under way.
  static constexpr std::size_t kDepth = 2;

  /// Bytes of a piece for a group of this size: large enough to be worth a message, small enough to be added
  /// while it is in a cache, and in all not more than some megabytes.
  static std::size_t piece_bytes(std::size_t num_members);

  /// Room for one piece of every member, kDepth times.
  std::byte* pieces(std::size_t num_members);

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace plenum::comm::mpi
