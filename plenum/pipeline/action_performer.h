#pragma once

#include <optional>

#include "plenum/pipeline/lane_communicators.h"
#include "plenum/pipeline/stage_program.h"

namespace plenum::pipeline {

/// Does a rank's actions: calls the method of its program that stands for the type, and communicates.
class ActionPerformer {
 public:
  ActionPerformer(comm::Communicator& ranks, const schedule::Schedule& schedule,
                  const schedule::Dataflow& dataflow, schedule::Rank rank, StageProgram& program,
                  LaneProgress& copy_progress);

  /// Does all of an action that needs no other rank, or begins to communicate; what it gives is to be waited
  /// for, after which communicated() ends it.
  std::optional<comm::Completion> begin(const ActionRun& run);
  void communicated(const ActionRun& run) { program_.communicated(run); }

 private:
  comm::Completion start_message(const ActionRun& run);
  comm::Completion start_collective(const ActionRun& run);

  const schedule::Dataflow& dataflow_;
  StageProgram& program_;
  LaneCommunicators communicators_;
};

}  // namespace plenum::pipeline
