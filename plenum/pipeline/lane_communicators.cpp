#include "plenum/pipeline/lane_communicators.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/pipeline/watched_communicator.h"

namespace plenum::pipeline {

using schedule::ActionType;
using schedule::Rank;

namespace {

std::vector<std::size_t> members_of(std::span<const Rank> group) {
  std::vector<std::size_t> members;
  for (const Rank rank : group) members.push_back(rank.index());
  return members;
}

}  // namespace

LaneCommunicators::LaneCommunicators(comm::Communicator& ranks, const schedule::Schedule& schedule,
                                     const schedule::Dataflow& dataflow, Rank rank,
                                     LaneProgress& copy_progress)
    : pipeline_(ranks.duplicate()),
      copy_(std::make_unique<WatchedCommunicator>(ranks.duplicate(), copy_progress)) {
  // Every rank creates the groups it is in, in this order: stages, tied, all.
  for (std::size_t stage = 0; stage < schedule.num_stages(); ++stage) {
    add_group(ranks, dataflow.holders(schedule::StageId::at(stage)), rank);
  }
  add_group(ranks, dataflow.group({.type = ActionType::ReduceTied}), rank);
  add_group(ranks, dataflow.group({.type = ActionType::Agree}), rank);
}

void LaneCommunicators::add_group(comm::Communicator& ranks, std::span<const Rank> group, Rank rank) {
  if (std::find(group.begin(), group.end(), rank) == group.end()) return;
  std::unique_ptr<comm::Communicator>& place = groups_[members_of(group)];
  if (!place) place = ranks.group(members_of(group));
}

void LaneCommunicators::issue_into(schedule::Lane lane, const tensor::WorkQueue& queue) {
  switch (lane) {
    case schedule::Lane::Compute:
      break;
    case schedule::Lane::DataParallel:
      for (auto& [members, group] : groups_) group->issue_into(queue);
      break;
    case schedule::Lane::Pipeline:
      pipeline_->issue_into(queue);
      break;
    case schedule::Lane::Copy:
      copy_->issue_into(queue);
      break;
  }
}

comm::Communicator& LaneCommunicators::of_group(std::span<const Rank> group) {
  const auto found = groups_.find(members_of(group));
  base::check(found != groups_.end(), "a rank takes part only in collectives of its own groups");
  return *found->second;
}

}  // namespace plenum::pipeline
