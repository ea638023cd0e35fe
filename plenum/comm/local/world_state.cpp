#include "plenum/comm/local/world_state.h"

#include <utility>

namespace plenum::comm::local {

WorldState::WorldState(std::size_t num_ranks) {
  std::vector<Rank> ranks;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) ranks.push_back(Rank::at(rank));
  all_ = std::make_shared<Group>(abort_, std::move(ranks));
  groups_.push_back(all_);
}

std::shared_ptr<Group> WorldState::group(const Group* parent, const std::vector<std::size_t>& members,
                                         std::uint64_t creation, std::vector<Rank> ranks) {
  const std::lock_guard lock(mutex_);
  const Key key{parent, members, creation};
  NewGroup& place = new_groups_[key];
  if (!place.group) {
    place.group = std::make_shared<Group>(abort_, std::move(ranks));
    std::erase_if(groups_, [](const std::weak_ptr<Group>& group) { return group.expired(); });
    groups_.push_back(place.group);
  }
  std::shared_ptr<Group> group = place.group;
  if (++place.num_taken == members.size()) new_groups_.erase(key);
  return group;
}

void WorldState::abort_all(Rank failed_rank, std::string_view reason) {
  if (!abort_->abort_all(failed_rank, reason)) return;
  std::vector<std::shared_ptr<Group>> groups;
  {
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<Group>& weak : groups_) {
      if (std::shared_ptr<Group> group = weak.lock()) groups.push_back(std::move(group));
    }
  }
  for (const std::shared_ptr<Group>& group : groups) group->wake();
}

}  // namespace plenum::comm::local
