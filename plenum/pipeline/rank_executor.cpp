#include "plenum/pipeline/rank_executor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plenum/pipeline/tags.h"
#include "plenum/schedule/core/action_text.h"

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
                           StageProgram& program, comm::Communicator& ranks, std::uint64_t first_step)
    : schedule_(schedule),
      dataflow_(dataflow),
      rank_(rank),
      first_step_(first_step),
      performer_(ranks, schedule, dataflow, rank, program, progress_[index_of(Lane::Copy)]),
      board_(dataflow.num_values(rank), schedule.problem.staleness, first_step) {
  for (std::size_t lane = 0; lane < schedule::kNumLanes; ++lane) {
    times_[lane].resize(program_of(static_cast<Lane>(lane)).actions().size());
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
    if (!has_work(lane)) continue;
    board_.enlist(lane, range.begin);
    progress_[i].step = range.begin;
    progress_[i].move_on(LaneState::AwaitsInputs);
  }
}

void RankExecutor::run_lane(Lane lane, std::stop_token stop) {
  LaneProgress& progress = progress_[index_of(lane)];
  try {
    LaneRun own{.lane = lane, .progress = progress, .stop = std::move(stop)};
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
  if (!board_.begin_step(lane.lane, step)) return false;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const ActionRun run{.action = actions[i], .step = step, .first_step = first_step_, .stop = lane.stop};
    if (!run_action(lane, run, program.step_begin(step_of_cycle) + i)) return false;
  }
  await_sends(lane);
  return true;
}

bool RankExecutor::run_action(LaneRun& lane, const ActionRun& run, std::size_t position) {
  poll_sends(lane);
  lane.progress.position.store(position, std::memory_order_relaxed);
  lane.progress.move_on(LaneState::AwaitsInputs);
  dataflow_.inputs(rank_, run.action, lane.values);
  if (!board_.wait(lane.lane, lane.values, run.step)) return false;

  const double start = seconds_now();
  // What would work on a step before the first has nothing to work on; gradients pass on as they are.
  const bool is_skipped = !run.has_data_step() && run.action.type != ActionType::Precondition;
  if (!is_skipped) perform(lane, run, position);
  if (run.step >= range_.timed_begin && run.step < range_.timed_begin + schedule_.num_steps()) {
    times_[index_of(lane.lane)][position] = {start, is_skipped ? start : seconds_now()};
  }
  dataflow_.outputs(rank_, run.action, lane.values);
  board_.publish(lane.values, run.step);
  return true;
}

void RankExecutor::perform(LaneRun& lane, const ActionRun& run, std::size_t position) {
  lane.progress.move_on(LaneState::Works);
  std::optional<comm::Completion> completion = performer_.begin(run);
  if (!completion) return;
  if (schedule::is_send(run.action.type)) {
    lane.sends.push_back({.run = run, .position = position, .completion = std::move(*completion)});
    return poll_sends(lane);
  }
  lane.progress.move_on(LaneState::AwaitsRanks);
  completion->wait();
  lane.progress.move_on(LaneState::Works);
  performer_.communicated(run);
}

void RankExecutor::poll_sends(LaneRun& lane) {
  lane.sends.remove_if([&](PendingSend& sent) {
    lane.progress.position.store(sent.position, std::memory_order_relaxed);
    if (!sent.completion.test()) return false;
    performer_.communicated(sent.run);
    return true;
  });
}

void RankExecutor::await_sends(LaneRun& lane) {
  for (PendingSend& sent : lane.sends) {
    lane.progress.position.store(sent.position, std::memory_order_relaxed);
    lane.progress.move_on(LaneState::AwaitsRanks);
    sent.completion.wait();
    lane.progress.move_on(LaneState::Works);
    performer_.communicated(sent.run);
  }
  lane.sends.clear();
}

std::string RankExecutor::awaited_by(Lane lane) const {
  const Action& action = action_at(lane);
  if (progress(lane).state == LaneState::AwaitsInputs) {
    const std::optional<schedule::ValueRef> missing = board_.missing(lane);
    return missing ? dataflow_.describe(rank_, missing->index) : "the other lanes";
  }
  if (schedule::is_receive(action.type)) {
    return fmt::format("the message of rank {}", dataflow_.peer(action).value);
  }
  if (schedule::is_send(action.type)) {
    return fmt::format("rank {} to take its message", dataflow_.peer(action).value);
  }
  return "the other ranks of its group";
}

Failure RankExecutor::failure_at(Lane lane, std::string message, std::exception_ptr cause) const {
  return {.rank = rank_,
          .lane = lane,
          .step = progress(lane).step,
          .action = schedule::action_text(action_at(lane), dataflow_.layers()),
          .message = std::move(message),
          .cause = std::move(cause)};
}

}  // namespace plenum::pipeline
