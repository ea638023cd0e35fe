#pragma once

#include <cstdint>
#include <span>
#include <stop_token>

#include "plenum/comm/communicator.h"
#include "plenum/schedule/core/action.h"
#include "plenum/tensor/work_queue.h"

namespace plenum::pipeline {

/// One run of one action.
struct ActionRun {
  const schedule::Action& action;
  std::uint64_t step = 0;        ///< that runs it, counted from the start of training
  std::uint64_t first_step = 0;  ///< of the run: nothing older exists
  /// Asked to stop when another action failed or this one takes too long: whatever may take long polls it.
  std::stop_token stop = {};
  /// The ranks that hold this one's stages together with it, each a slice, in the order of their slices; all
  /// run the same actions in step. For actions of the compute lane; null where one rank holds all.
  comm::Communicator* slices = nullptr;

  /// Whether the step whose values it works on is part of the run.
  bool has_data_step() const { return step >= first_step + action.age; }
  /// The step whose values it works on.
  std::uint64_t data_step() const { return step - action.age; }
};

/// A buffer whose parts belong to the members of a group, in their order.
struct PartitionedElements {
  comm::Elements whole;
  std::span<const std::size_t> counts;  ///< elements of each member's part
};

/// The work behind the actions of one rank: the executor decides when, the program knows what. Every program
/// has the actions of the plainest step; of the others it has those of the schedules that it takes, and the
/// rest throw InternalError.
///
/// Every call comes from the thread of the action's lane, so calls of different lanes come at the same time;
/// each comes after everything that made the action's inputs (Dataflow::inputs) has returned, and everything
/// that reads its outputs comes after it. A lane never begins a step while another lane of the rank is still
/// two steps behind, on the host or on the device, so values need room for at most age + 2 steps. Actions
/// that work on a step before the first are not called, except Precondition, which then passes the gradient
/// on as it is. What is thrown ends the whole run.
///
/// A method returns when its work is done, or, in a lane that has a queue of a device (queue()), when its
/// work is issued into that queue. The executor then tells the lanes that read its outputs. Before an action
/// of a lane with a queue is issued, the executor lets the queue wait for what other queues have still to do
/// for its inputs; a lane without one waits on the host instead. So methods never wait for a device, and read
/// on the host only what lanes without a queue have made.
class StageProgram {
 public:
  virtual ~StageProgram() = default;

  /// The queue into which the work of a lane goes, the same at every call; null for a lane whose work is done
  /// when its methods return. In a lane that communicates, the communicator must be able to use it
  /// (comm::Communicator::issue_into).
  virtual const tensor::WorkQueue* queue(schedule::Lane /*lane*/) { return nullptr; }

  /// Compute lane.
  virtual void forward(const ActionRun& run) = 0;
  virtual void backward(const ActionRun& run) = 0;
  virtual void input_gradient(const ActionRun& run) { refuse(run); }
  virtual void weight_gradient(const ActionRun& run) { refuse(run); }
  virtual void recompute(const ActionRun& run) { refuse(run); }
  virtual void curvature(const ActionRun& run) { refuse(run); }  ///< CurvatureA and CurvatureB
  virtual void invert(const ActionRun& run) { refuse(run); }
  virtual void invert_layers(const ActionRun& run) { refuse(run); }
  virtual void accumulate_factor(const ActionRun& run) { refuse(run); }
  virtual void inverse_root(const ActionRun& run) { refuse(run); }
  virtual void precondition(const ActionRun& run) { refuse(run); }
  /// Adds up the squares of the rank's part of the gradient, which Agree sums: each element is one rank's.
  virtual void square_gradient(const ActionRun& run) = 0;
  virtual void update_moments(const ActionRun& run) { refuse(run); }
  virtual void update(const ActionRun& run) = 0;

  /// Communication: the program gives the buffer, which stays valid until the executor says communicated().
  /// The lane goes on before a send is complete, at most to the end of the step: what is sent stays as it is
  /// until it has come to its receiver. Messages have planned places (schedule::RankSlots), which are used
  /// again once that is certain, perhaps before communicated(); a receive is posted when its lane comes to
  /// it, not before.
  /// A message to another stage (SendActivation, SendGradient).
  virtual comm::ConstElements outgoing(const ActionRun& run) { refuse(run); }
  /// Where a message goes (ReceiveActivation, ReceiveGradient).
  virtual comm::Elements incoming(const ActionRun& run) { refuse(run); }
  /// What is summed over the group in place: ReduceGradient, ReduceTied, ReduceTiedOutput, ReduceCurvature,
  /// ReduceTensorNorms, Agree.
  virtual comm::Elements to_reduce(const ActionRun& run) = 0;
  /// What is summed so that each member gets its part (ReduceScatterGradient, ReduceScatterRound,
  /// ReduceScatterTiedOutput), or put together from the members' parts (GatherParameters, GatherForward,
  /// GatherBackward, GatherTiedRows, GatherTied, GatherPreconditioned), in place.
  virtual PartitionedElements to_partition(const ActionRun& run) { refuse(run); }
  /// What is put together from the members' parts besides, once a gather is done, in place: elements of
  /// another type. No counts where there is nothing.
  virtual PartitionedElements to_gather_besides(const ActionRun& /*run*/) { return {}; }
  /// The message has left the buffer or has come; the result lies in the buffer. In a lane with a queue: for
  /// what is put into it from now on.
  virtual void communicated(const ActionRun& run) = 0;

  /// Copy lane: the communicator of all ranks that belongs to it.
  virtual void exchange_data(const ActionRun& run, comm::Communicator& /*ranks*/) { refuse(run); }

 private:
  /// Names the action in an InternalError: the schedule has it, the program has not.
  [[noreturn]] static void refuse(const ActionRun& run);
};

}  // namespace plenum::pipeline
