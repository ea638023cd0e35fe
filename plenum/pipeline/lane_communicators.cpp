#include "plenum/pipeline/lane_communicators.h"

#include <algorithm>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/pipeline/watched_communicator.h"

namespace plenum::pipeline {

using schedule::ActionType;
using schedule::Lane;
using schedule::Rank;

namespace {

std::vector<std::size_t> members_of(std::span<const Rank> group) {
  std::vector<std::size_t> members;
  for (const Rank rank : group) members.push_back(rank.index());
  return members;
}

}  // namespace

LaneCommunicators::LaneCommunicators(RankCommunicators own, const schedule::Schedule& schedule,
                                     const schedule::Dataflow& dataflow, Rank rank,
                                     std::array<LaneProgress, schedule::kNumLanes>& progress)
    : pipeline_(own.ranks.duplicate()),
      copy_(std::make_unique<WatchedCommunicator>(own.ranks.duplicate(),
                                                  progress[static_cast<std::size_t>(Lane::Copy)])),
      everyone_(std::move(own.everyone)) {
  if (own.slices) {
    slices_ = std::make_unique<WatchedCommunicator>(std::move(own.slices),
                                                    progress[static_cast<std::size_t>(Lane::Compute)]);
  }
  comm::Communicator& ranks = own.ranks;
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
    case Lane::Compute:
      if (slices_) slices_->issue_into(queue);
      break;
    case Lane::DataParallel:
      for (auto& [members, group] : groups_) group->issue_into(queue);
      if (everyone_) everyone_->issue_into(queue);
      break;
    case Lane::Pipeline:
      pipeline_->issue_into(queue);
      break;
    case Lane::Copy:
      copy_->issue_into(queue);
      break;
  }
}

comm::Communicator& LaneCommunicators::of(const schedule::Action& action, std::span<const Rank> group) {
  if (action.type == ActionType::Agree && everyone_) return *everyone_;
  const auto found = groups_.find(members_of(group));
  base::check(found != groups_.end(), "a rank takes part only in collectives of its own groups");
  return *found->second;
}

}  // namespace plenum::pipeline
