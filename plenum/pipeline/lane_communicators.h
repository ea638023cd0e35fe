#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "plenum/comm/communicator.h"
#include "plenum/pipeline/lane_progress.h"
#include "plenum/schedule/core/dataflow.h"

namespace plenum::pipeline {

/// Who a rank communicates with: LocalRank.
struct RankCommunicators {
  comm::Communicator& ranks;  ///< borrowed
  std::unique_ptr<comm::Communicator> slices = {};
  std::unique_ptr<comm::Communicator> everyone = {};
};

/// The communicators of one rank's lanes: lanes run at the same time, so each has its own.
class LaneCommunicators {
 public:
  /// Creates all that the schedule's collectives can need. Every rank does so, at the same time where the
  /// engine needs that. Borrows the progress of all lanes: programs communicate at their own will in the copy
  /// lane, and in the compute lane where they have slices.
  LaneCommunicators(RankCommunicators own, const schedule::Schedule& schedule,
                    const schedule::Dataflow& dataflow, schedule::Rank rank,
                    std::array<LaneProgress, schedule::kNumLanes>& progress);

  /// Lets all that a lane communicates from now on go into a queue of the rank's device.
  void issue_into(schedule::Lane lane, const tensor::WorkQueue& queue);

  comm::Communicator& pipeline() const { return *pipeline_; }
  comm::Communicator& copy() { return *copy_; }
  /// Of the slices of this rank; null where it is whole.
  comm::Communicator* slices() const { return slices_.get(); }
  /// Of those that take part in a collective in the data-parallel lane: its group, or all slices of all ranks
  /// where these agree. Throws InternalError if the rank is not in it.
  comm::Communicator& of(const schedule::Action& action, std::span<const schedule::Rank> group);

 private:
  using Members = std::vector<std::size_t>;
  void add_group(comm::Communicator& ranks, std::span<const schedule::Rank> group, schedule::Rank rank);

  std::unique_ptr<comm::Communicator> pipeline_;
  std::unique_ptr<comm::Communicator> copy_;
  std::unique_ptr<comm::Communicator> slices_;
  std::unique_ptr<comm::Communicator> everyone_;
  std::map<Members, std::unique_ptr<comm::Communicator>> groups_;
};

}  // namespace plenum::pipeline
