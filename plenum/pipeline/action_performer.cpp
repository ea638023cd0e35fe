#include "plenum/pipeline/action_performer.h"

#include <numeric>

#include "plenum/base/check.h"
#include "plenum/pipeline/tags.h"

namespace plenum::pipeline {

using schedule::Action;
using schedule::ActionType;
using schedule::Rank;

ActionPerformer::ActionPerformer(comm::Communicator& ranks, const schedule::Schedule& schedule,
                                 const schedule::Dataflow& dataflow, Rank rank, StageProgram& program,
                                 LaneProgress& copy_progress)
    : dataflow_(dataflow),
      program_(program),
      communicators_(ranks, schedule, dataflow, rank, copy_progress) {}

std::optional<comm::Completion> ActionPerformer::begin(const ActionRun& run) {
  switch (run.action.type) {
    case ActionType::Forward:
      program_.forward(run);
      break;
    case ActionType::Backward:
      program_.backward(run);
      break;
    case ActionType::InputGradient:
      program_.input_gradient(run);
      break;
    case ActionType::WeightGradient:
      program_.weight_gradient(run);
      break;
    case ActionType::Recompute:
      program_.recompute(run);
      break;
    case ActionType::CurvatureA:
    case ActionType::CurvatureB:
      program_.curvature(run);
      break;
    case ActionType::Invert:
      program_.invert(run);
      break;
    case ActionType::AccumulateFactor:
      program_.accumulate_factor(run);
      break;
    case ActionType::InverseRoot:
      program_.inverse_root(run);
      break;
    case ActionType::Precondition:
      program_.precondition(run);
      break;
    case ActionType::SquareGradient:
      program_.square_gradient(run);
      break;
    case ActionType::Update:
      program_.update(run);
      break;
    case ActionType::ExchangeData:
      program_.exchange_data(run, communicators_.copy());
      break;
    case ActionType::SendActivation:
    case ActionType::ReceiveActivation:
    case ActionType::SendGradient:
    case ActionType::ReceiveGradient:
      return start_message(run);
    case ActionType::ReduceGradient:
    case ActionType::ReduceTied:
    case ActionType::ReduceCurvature:
    case ActionType::Agree:
    case ActionType::ReduceScatterGradient:
    case ActionType::GatherParameters:
    case ActionType::GatherPreconditioned:
      return start_collective(run);
  }
  return std::nullopt;
}

comm::Completion ActionPerformer::start_message(const ActionRun& run) {
  const Rank peer = dataflow_.peer(run.action);
  base::check(!peer.is_none(), "a message needs a rank at its other end");
  comm::Communicator& ranks = communicators_.pipeline();
  if (schedule::is_send(run.action.type)) {
    return ranks.start_send(peer.index(), message_tag(run.action, run.step), program_.outgoing(run));
  }
  const Action send = dataflow_.counterpart(run.action);
  return ranks.start_receive(peer.index(), message_tag(send, run.step), program_.incoming(run));
}

comm::Completion ActionPerformer::start_collective(const ActionRun& run) {
  comm::Communicator& group = communicators_.of_group(dataflow_.group(run.action));
  const comm::Tag tag = collective_tag(run.action, run.step);
  const bool scatters = run.action.type == ActionType::ReduceScatterGradient;
  const bool gathers =
      run.action.type == ActionType::GatherParameters || run.action.type == ActionType::GatherPreconditioned;
  if (!scatters && !gathers) {
    return group.start_all_reduce(program_.to_reduce(run), comm::Reduction::Sum, tag);
  }
  const PartitionedElements buffer = program_.to_partition(run);
  base::check(buffer.counts.size() == group.size(), "there must be a part for each member: {} of {}",
              buffer.counts.size(), group.size());
  const std::size_t num_elements =
      std::accumulate(buffer.counts.begin(), buffer.counts.end(), std::size_t{0});
  base::check(buffer.whole.count() == num_elements, "the parts must make up the buffer: {} of {} elements",
              num_elements, buffer.whole.count());
  const auto own = buffer.counts.begin() + static_cast<std::ptrdiff_t>(group.index());
  const comm::Elements part =
      buffer.whole.part(std::accumulate(buffer.counts.begin(), own, std::size_t{0}), *own);
  return scatters ? group.start_reduce_scatter(buffer.whole, part, buffer.counts, comm::Reduction::Sum, tag)
                  : group.start_all_gather(part, buffer.whole, buffer.counts, tag);
}

}  // namespace plenum::pipeline
