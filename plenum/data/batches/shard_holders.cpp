#include "plenum/data/batches/shard_holders.h"

#include <fmt/ranges.h>

#include "plenum/base/check.h"

namespace plenum::data {

ShardHolders::ShardHolders(const std::vector<bool>& here, comm::Communicator& ranks) : holders_(here.size()) {
  constexpr comm::Tag kTag = 0;
  const std::size_t num_shards = here.size();
  std::vector<std::byte> own;
  for (const bool is_here : here) own.push_back(std::byte{is_here});
  std::vector<std::byte> all(ranks.size() * num_shards);
  const std::vector<std::size_t> counts(ranks.size(), num_shards);
  ranks.start_all_gather({own, tensor::DType::Byte}, {all, tensor::DType::Byte}, counts, kTag).wait();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<bool>& of_rank = has_.emplace_back();
    for (std::size_t shard = 0; shard < num_shards; ++shard) {
      of_rank.push_back(all[rank * num_shards + shard] != std::byte{0});
      if (of_rank.back()) holders_[shard].push_back(rank);
    }
  }
  std::vector<std::size_t> missing;
  for (std::size_t shard = 0; shard < num_shards; ++shard) {
    if (holders_[shard].empty()) missing.push_back(shard);
  }
  base::require(missing.empty(),
                "of the {} shards of the dataset no process has {}; each must be on the disk of one of them",
                num_shards, fmt::join(missing, ", "));
}

}  // namespace plenum::data
