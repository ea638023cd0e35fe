#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plenum/comm/communicator.h"

namespace plenum::data {

/// Which ranks have which shards of a dataset (DatasetShard) on their disks.
class ShardHolders {
 public:
  /// Tells all ranks what this one has, by shard, and hears what the others have; by all ranks at the same
  /// time. Throws UserError, in all of them, if a shard is nowhere.
  ShardHolders(const std::vector<bool>& here, comm::Communicator& ranks);

  std::size_t num_ranks() const { return has_.size(); }
  /// Whether a rank reads a sequence from its own disk.
  bool has(std::size_t rank, std::uint64_t id) const { return has_[rank][shard_of(id)]; }
  /// The rank that sends a sequence to one that has it not. Of several that could, ranks take turns.
  std::size_t sender_of(std::uint64_t id, std::size_t to) const {
    const std::vector<std::size_t>& holders = holders_[shard_of(id)];
    return holders[to % holders.size()];
  }

 private:
  std::size_t shard_of(std::uint64_t id) const { return static_cast<std::size_t>(id % holders_.size()); }

  std::vector<std::vector<bool>> has_;             ///< by rank and shard
  std::vector<std::vector<std::size_t>> holders_;  ///< by shard, ranks in ascending order
};

}  // namespace plenum::data
