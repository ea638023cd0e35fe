#include "plenum/pipeline/rank_executor.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/pipeline/tags.h"
#include "plenum/schedule/core/action_text.h"
#include "plenum/tensor/cuda_range.h"

namespace plenum::pipeline {

using schedule::Action;
using schedule::ActionType;
using schedule::Lane;
using schedule::LaneProgram;
using schedule::Rank;

namespace {

double seconds_now() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

}  // namespace

RankExecutor::RankExecutor(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow, Rank rank,
                           StageProgram& program, RankCommunicators communicators, std::uint64_t first_step)
    : schedule_(schedule),
      dataflow_(dataflow),
      rank_(rank),
      world_rank_(communicators.ranks.rank_of(communicators.ranks.index())),
      program_(program),
      first_step_(first_step),
      communicators_(std::move(communicators), schedule, dataflow, rank, progress_),
      board_(dataflow.num_values(rank), schedule.problem.staleness, first_step) {
  // A lane in step t asks for events of t - 2, and of t - staleness, while another may record those of t + 1.
  const std::size_t num_kept_steps = std::max<std::size_t>(2, schedule.problem.staleness) + 2;
  for (std::size_t i = 0; i < schedule::kNumLanes; ++i) {
    const Lane lane = static_cast<Lane>(i);
    times_[i].resize(program_of(lane).actions().size());
    longest_seconds_[i].resize(program_of(lane).actions().size());
    const tensor::WorkQueue* const queue = has_work(lane) ? program.queue(lane) : nullptr;
    if (queue == nullptr) continue;
    queues_[i] = std::make_unique<LaneQueue>(*queue, program_of(lane), num_kept_steps);
    communicators_.issue_into(lane, *queue);
    has_queues_ = true;
  }
}

const LaneProgram& RankExecutor::program_of(Lane lane) const {
  return schedule_.ranks[rank_.index()].lane(lane);
}

const Action& RankExecutor::action_at(Lane lane) const {
  return program_of(lane).actions()[progress(lane).position];
}

void RankExecutor::prepare(const StepRange& range) {
  range_ = range;
  for (std::size_t i = 0; i < schedule::kNumLanes; ++i) {
    const Lane lane = static_cast<Lane>(i);
    std::fill(times_[i].begin(), times_[i].end(), schedule::ActionTime{});
    if (queues_[i]) queues_[i]->prepare_times();
    if (!has_work(lane)) continue;
    board_.enlist(lane, range.begin);
    progress_[i].step = range.begin;
    progress_[i].move_on(LaneState::AwaitsInputs);
  }
}

void RankExecutor::run_lane(Lane lane, std::stop_token stop) {
  LaneProgress& progress = progress_[index_of(lane)];
  try {
    LaneRun own{
        .lane = lane, .progress = progress, .queue = queues_[index_of(lane)].get(), .stop = std::move(stop)};
    for (std::uint64_t step = range_.begin; step < range_.end; ++step) {
      if (own.stop.stop_requested() || !run_step(own, step)) break;
    }
  } catch (const comm::Aborted& error) {
    Failure failure = failure_at(lane, error.what(), std::current_exception());
    failure.aborted_by = error.failed_rank();
    throw ExecutionError(std::move(failure));
  } catch (const std::exception& error) {
    throw ExecutionError(failure_at(lane, error.what(), std::current_exception()));
  } catch (...) {
    throw ExecutionError(failure_at(lane, "something that is no std::exception", std::current_exception()));
  }
  board_.retire(lane);
  progress.move_on(LaneState::Ended);
}

bool RankExecutor::run_step(LaneRun& lane, std::uint64_t step) {
  const LaneProgram& program = program_of(lane.lane);
  const std::size_t step_of_cycle = step % schedule_.num_steps();
  const std::span<const Action> actions = program.step(step_of_cycle);
  lane.progress.step.store(step, std::memory_order_relaxed);
  lane.progress.move_on(LaneState::AwaitsInputs);
  if (!board_.begin_step(lane.lane, step) || !await_older_steps(lane, step)) return false;
  const tensor::CudaRange range(
      [&] { return fmt::format("step {}, rank {}, {}", step, rank_.value, lane_name(lane.lane)); });
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const ActionRun run{.action = actions[i],
                        .step = step,
                        .first_step = first_step_,
                        .stop = lane.stop,
                        .slices = communicators_.slices()};
    if (!run_action(lane, run, {i, program.step_begin(step_of_cycle) + i})) return false;
  }
  await_sends(lane);
  return true;
}

bool RankExecutor::is_timed(const LaneRun& lane, std::uint64_t step) const {
  if (lane.queue != nullptr && !range_.has_device_times) return false;
  return step >= range_.timed_begin && step < range_.timed_begin + schedule_.num_steps();
}

bool RankExecutor::run_action(LaneRun& lane, const ActionRun& run, Place place) {
  poll_sends(lane);
  lane.progress.position.store(place.position, std::memory_order_relaxed);
  lane.progress.move_on(LaneState::AwaitsInputs);
  dataflow_.inputs(rank_, run.action, lane.values);
  if (!board_.wait(lane.lane, lane.values, run.step)) return false;
  if (has_queues_) {
    board_.collect_events(lane.lane, lane.values, run.step, lane.events);
    if (!await_events(lane)) return false;
  }

  const bool is_timed = this->is_timed(lane, run.step);
  // What would work on a step before the first has nothing to work on; gradients pass on as they are.
  const bool is_skipped = !run.has_data_step() && run.action.type != ActionType::Precondition;
  const tensor::QueueEvent* event = nullptr;
  if (lane.queue != nullptr) {
    if (is_timed) lane.queue->begin_timed(place.position);
    if (!is_skipped) perform(lane, run, place.position);
    if (is_timed) lane.queue->end_timed(place.position);
    event = &lane.queue->end_action(run.step, place.index);
  } else {
    const double start = is_timed ? seconds_now() : 0;
    if (!is_skipped) perform(lane, run, place.position);
    if (is_timed) times_[index_of(lane.lane)][place.position] = {start, is_skipped ? start : seconds_now()};
  }
  dataflow_.outputs(rank_, run.action, lane.values);
  board_.publish(lane.lane, lane.values, run.step, event);
  return true;
}

bool RankExecutor::await_older_steps(LaneRun& lane, std::uint64_t step) {
  if (!has_queues_ || step < first_step_ + 2) return true;
  lane.events.clear();
  for (const std::unique_ptr<LaneQueue>& other : queues_) {
    if (!other || other.get() == lane.queue) continue;
    if (const tensor::QueueEvent* const event = other->event_behind_step(step - 2))
      lane.events.push_back(event);
  }
  return await_events(lane);
}

bool RankExecutor::await_events(LaneRun& lane) {
  if (lane.queue != nullptr) {
    for (const tensor::QueueEvent* const event : lane.events) lane.queue->queue().wait_for(*event);
    return true;
  }
  for (const tensor::QueueEvent* const event : lane.events) {
    lane.progress.move_on(LaneState::AwaitsDevice);
    if (!tensor::wait_on_host(*event, [&] { return lane.stop.stop_requested(); })) return false;
  }
  return true;
}

void RankExecutor::perform(LaneRun& lane, const ActionRun& run, std::size_t position) {
  const tensor::CudaRange range([&] { return schedule::action_text(run.action, dataflow_.layers()); });
  double& longest = longest_seconds_[index_of(lane.lane)][position];
  lane.progress.longest_seconds.store(longest, std::memory_order_relaxed);
  lane.progress.move_on(LaneState::Works);
  const double begin = seconds_now();
  std::optional<comm::Completion> completion = start(run);
  longest = std::max(longest, seconds_now() - begin);
  if (!completion) return;
  if (schedule::is_send(run.action.type)) {
    lane.sends.push_back({.run = run, .position = position, .completion = std::move(*completion)});
    return poll_sends(lane);
  }
  lane.progress.move_on(LaneState::AwaitsRanks);
  completion->wait();
  if (schedule::is_gather(run.action.type)) gather_besides(run);
  lane.progress.move_on(LaneState::Works);
  program_.communicated(run);
}

void RankExecutor::gather_besides(const ActionRun& run) {
  const PartitionedElements buffer = program_.to_gather_besides(run);
  if (!buffer.counts.empty()) start_partitioned(run, buffer).wait();
}

std::optional<comm::Completion> RankExecutor::start(const ActionRun& run) {
  const ActionType type = run.action.type;
  if (schedule::is_send(type) || schedule::is_receive(type)) return start_message(run);
  if (type != ActionType::ExchangeData && schedule::traits_of(type).is_collective)
    return start_collective(run);
  switch (type) {
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
    case ActionType::InvertLayers:
      program_.invert_layers(run);
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
    case ActionType::UpdateMoments:
      program_.update_moments(run);
      break;
    case ActionType::Update:
      program_.update(run);
      break;
    case ActionType::ExchangeData:
      program_.exchange_data(run, communicators_.copy());
      break;
    default:
      base::check(false, "nobody says how an action of this type is done: {}",
                  schedule::traits_of(type).name);
  }
  return std::nullopt;
}

comm::Completion RankExecutor::start_message(const ActionRun& run) {
  const Rank peer = dataflow_.peer(run.action);
  base::check(!peer.is_none(), "a message needs a rank at its other end");
  comm::Communicator& ranks = communicators_.pipeline();
  if (schedule::is_send(run.action.type)) {
    return ranks.start_send(peer.index(), message_tag(run.action, run.step), program_.outgoing(run));
  }
  const Action send = dataflow_.counterpart(run.action);
  return ranks.start_receive(peer.index(), message_tag(send, run.step), program_.incoming(run));
}

comm::Completion RankExecutor::start_collective(const ActionRun& run) {
  if (schedule::is_scatter(run.action.type) || schedule::is_gather(run.action.type))
    return start_partitioned(run, program_.to_partition(run));
  comm::Communicator& group = communicators_.of(run.action, dataflow_.group(run.action));
  return group.start_all_reduce(program_.to_reduce(run), collective_tag(run.action, run.step));
}

comm::Completion RankExecutor::start_partitioned(const ActionRun& run, const PartitionedElements& buffer) {
  comm::Communicator& group = communicators_.of(run.action, dataflow_.group(run.action));
  const comm::Tag tag = collective_tag(run.action, run.step);
  base::check(buffer.counts.size() == group.size(), "there must be a part for each member: {} of {}",
              buffer.counts.size(), group.size());
  const std::size_t num_elements =
      std::accumulate(buffer.counts.begin(), buffer.counts.end(), std::size_t{0});
  base::check(buffer.whole.count() == num_elements, "the parts must make up the buffer: {} of {} elements",
              num_elements, buffer.whole.count());
  const auto own = buffer.counts.begin() + static_cast<std::ptrdiff_t>(group.index());
  const comm::Elements part =
      buffer.whole.part(std::accumulate(buffer.counts.begin(), own, std::size_t{0}), *own);
  return schedule::is_scatter(run.action.type)
             ? group.start_reduce_scatter(buffer.whole, part, buffer.counts, tag)
             : group.start_all_gather(part, buffer.whole, buffer.counts, tag);
}

void RankExecutor::poll_sends(LaneRun& lane) {
  lane.sends.remove_if([&](PendingSend& sent) {
    lane.progress.position.store(sent.position, std::memory_order_relaxed);
    if (!sent.completion.test()) return false;
    program_.communicated(sent.run);
    return true;
  });
}

void RankExecutor::await_sends(LaneRun& lane) {
  for (PendingSend& sent : lane.sends) {
    lane.progress.position.store(sent.position, std::memory_order_relaxed);
    lane.progress.move_on(LaneState::AwaitsRanks);
    sent.completion.wait();
    lane.progress.move_on(LaneState::Works);
    program_.communicated(sent.run);
  }
  lane.sends.clear();
}

std::optional<Failure> RankExecutor::await_step(std::uint64_t step, std::chrono::milliseconds limit) {
  for (std::size_t i = 0; i < schedule::kNumLanes; ++i) {
    const LaneQueue* const queue = queues_[i].get();
    const tensor::QueueEvent* const end = queue == nullptr ? nullptr : queue->event_behind_step(step);
    if (end == nullptr) continue;
    const std::span<const Action> actions =
        program_of(static_cast<Lane>(i)).step(step % schedule_.num_steps());
    std::size_t num_done = 0;
    Clock::time_point moved = Clock::now();
    const auto hangs = [&] {
      const std::size_t num_seen = num_done;
      while (num_done + 1 < actions.size() && queue->event_behind(step, num_done).is_done()) ++num_done;
      if (num_done != num_seen) moved = Clock::now();
      return Clock::now() - moved >= limit;
    };
    if (tensor::wait_on_host(*end, hangs)) continue;
    Failure failure = failure_of(
        static_cast<Lane>(i), step, actions[num_done],
        fmt::format("hangs: it was issued, and the device has not done it for {} ms", limit.count()));
    failure.is_hang = true;
    return failure;
  }
  return std::nullopt;
}

std::optional<Failure> RankExecutor::device_failure() const {
  for (std::size_t i = 0; i < schedule::kNumLanes; ++i) {
    if (!queues_[i]) continue;
    try {
      static_cast<void>(queues_[i]->event_behind(progress_[i].step, 0).is_done());
    } catch (const std::exception& error) {
      return failure_at(static_cast<Lane>(i), error.what(), std::current_exception());
    }
  }
  return std::nullopt;
}

bool RankExecutor::is_device_idle() const {
  if (device_failure()) return true;
  return std::all_of(queues_.begin(), queues_.end(), [](const std::unique_ptr<LaneQueue>& queue) {
    return queue == nullptr || queue->is_idle();
  });
}

schedule::RankTimes RankExecutor::times() const {
  schedule::RankTimes times = times_;
  if (has_queues_ && range_.has_device_times) read_device_times(times);
  return times;
}

void RankExecutor::read_device_times(schedule::RankTimes& times) const {
  std::unique_ptr<tensor::QueueEvent> anchor;
  double anchor_seconds = 0;
  for (std::size_t i = 0; i < schedule::kNumLanes; ++i) {
    if (!queues_[i]) continue;
    const tensor::WorkQueue& queue = queues_[i]->queue();
    // Once nothing is left to do, an event is done when it is recorded: its time on both clocks is known.
    std::unique_ptr<tensor::QueueEvent> last = queue.make_event(tensor::WorkQueue::Timed::Yes);
    queue.record(*last);
    tensor::wait_on_host(*last, [] { return false; });
    queue.record(*last);
    while (!last->is_done()) std::this_thread::yield();
    anchor_seconds = seconds_now();
    anchor = std::move(last);
  }
  for (std::size_t i = 0; i < schedule::kNumLanes; ++i) {
    for (std::size_t position = 0; queues_[i] && position < times[i].size(); ++position) {
      if (!queues_[i]->is_timed(position)) continue;
      times[i][position] = queues_[i]->time_of(position, *anchor, anchor_seconds);
    }
  }
}

comm::Rank RankExecutor::peer_of(const Action& message) const {
  const Rank peer = dataflow_.peer(message);
  return peer.is_none() ? peer : communicators_.pipeline().rank_of(peer.index());
}

std::string RankExecutor::awaited_by(Lane lane) const {
  const Action& action = action_at(lane);
  if (progress(lane).state == LaneState::AwaitsInputs) {
    const std::optional<schedule::ValueRef> missing = board_.missing(lane);
    return missing ? dataflow_.describe(rank_, missing->index) : "the other lanes";
  }
  if (progress(lane).state == LaneState::AwaitsDevice) return "its device, which has inputs still to make";
  if (schedule::is_receive(action.type)) {
    return fmt::format("the message of rank {}", peer_of(action).value);
  }
  if (schedule::is_send(action.type)) {
    return fmt::format("rank {} to take its message", peer_of(action).value);
  }
  return "the other ranks of its group";
}

Failure RankExecutor::failure_at(Lane lane, std::string message, std::exception_ptr cause) const {
  Failure failure = failure_of(lane, progress(lane).step, action_at(lane), std::move(message));
  failure.cause = std::move(cause);
  return failure;
}

Failure RankExecutor::failure_of(Lane lane, std::uint64_t step, const Action& action,
                                 std::string message) const {
  return {.rank = world_rank_,
          .lane = lane,
          .step = step,
          .action = schedule::action_text(action, dataflow_.layers()),
          .message = std::move(message)};
}

}  // namespace plenum::pipeline
