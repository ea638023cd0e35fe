#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <tuple>
#include <vector>

#include "plenum/comm/local/group.h"

namespace plenum::comm::local {

/// What all communicators of a world have in common: its groups, and whether it was aborted.
class WorldState {
 public:
  explicit WorldState(std::size_t num_ranks);

  /// The group of all ranks.
  const std::shared_ptr<Group>& all() const { return all_; }
  /// The `creation`-th group of these members of `parent`; made by the first who asks.
  std::shared_ptr<Group> group(const Group* parent, const std::vector<std::size_t>& members,
                               std::uint64_t creation, std::vector<Rank> ranks);
  void abort_all(Rank failed_rank, std::string_view reason);

 private:
  using Key = std::tuple<const Group*, std::vector<std::size_t>, std::uint64_t>;
  struct NewGroup {
    std::shared_ptr<Group> group;
    std::size_t num_taken = 0;
  };

  std::shared_ptr<AbortState> abort_ = std::make_shared<AbortState>();
  std::mutex mutex_;
  std::map<Key, NewGroup> new_groups_;  ///< that some member has yet to ask for
  std::vector<std::weak_ptr<Group>> groups_;
  std::shared_ptr<Group> all_;
};

}  // namespace plenum::comm::local
