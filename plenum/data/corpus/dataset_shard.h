#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::data {

/// A part of a dataset's training sequences: of `count` shards the one that has the sequences whose numbers
/// are `index` modulo `count`. Numbers go by length, so shards have the same lengths but for one sequence of
/// each, and whoever knows a sequence's number knows its shard. A dataset that is not divided is one shard.
struct DatasetShard {
  std::uint64_t index = 0;
  std::uint64_t count = 1;

  bool is_whole() const { return count == 1; }
  bool has(std::uint64_t id) const { return id % count == index; }
  /// Of so many that the dataset has.
  std::uint64_t num_sequences(std::uint64_t of_dataset) const {
    return of_dataset / count + (index < of_dataset % count ? 1 : 0);
  }
  /// The number in the dataset of the shard's sequence `place`, counted from 0.
  std::uint64_t id_of(std::uint64_t place) const { return place * count + index; }
  /// The reverse.
  std::uint64_t place_of(std::uint64_t id) const { return id / count; }

  bool operator==(const DatasetShard&) const = default;
};

inline constexpr std::uint64_t kMostShards = 1 << 16;

/// The directory of a shard: "shard-3".
std::string shard_name(std::uint64_t index);
/// Whether a shard's directory could be called so.
bool is_shard_name(std::string_view name);

/// The directories of the shards that lie in a directory, by their names' numbers. None where it has a
/// description of its own, or none.
std::vector<std::string> shard_directories(const std::string& directory);

}  // namespace plenum::data
