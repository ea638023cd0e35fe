#pragma once

#include <map>
#include <memory>
#include <vector>

#include "plenum/comm/communicator.h"
#include "plenum/pipeline/lane_progress.h"
#include "plenum/schedule/core/dataflow.h"

namespace plenum::pipeline {

/// The communicators of one rank's lanes: lanes run at the same time, so each has its own.
class LaneCommunicators {
 public:
  /// Creates all that the schedule's collectives can need. Every rank does so, at the same time where the
  /// engine needs that. Borrows the progress of the copy lane, whose program communicates at its own will.
  LaneCommunicators(comm::Communicator& ranks, const schedule::Schedule& schedule,
                    const schedule::Dataflow& dataflow, schedule::Rank rank, LaneProgress& copy_progress);

  /// Lets all that a lane communicates from now on go into a queue of the rank's device.
  void issue_into(schedule::Lane lane, const tensor::WorkQueue& queue);

  comm::Communicator& pipeline() { return *pipeline_; }
  comm::Communicator& copy() { return *copy_; }
  /// Of the group of a collective in the data-parallel lane. Throws InternalError if the rank is not in it.
  comm::Communicator& of_group(std::span<const schedule::Rank> group);

 private:
  using Members = std::vector<std::size_t>;
  void add_group(comm::Communicator& ranks, std::span<const schedule::Rank> group, schedule::Rank rank);

  std::unique_ptr<comm::Communicator> pipeline_;
  std::unique_ptr<comm::Communicator> copy_;
  std::map<Members, std::unique_ptr<comm::Communicator>> groups_;
};

}  // namespace plenum::pipeline
