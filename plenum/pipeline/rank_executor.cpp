#include "plenum/pipeline/rank_executor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plenum/pipeline/tags.h"
#include "plenum/schedule/action_text.h"

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

void move_on(LaneProgress& progress, LaneState state) {
  progress.state.store(state, std::memory_order_relaxed);
  progress.num_moves.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

RankExecutor::RankExecutor(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow, Rank rank,
                           StageProgram& program, comm::Communicator& ranks, std::uint64_t first_step)
    : schedule_(schedule),
      dataflow_(dataflow),
      rank_(rank),
      first_step_(first_step),
      performer_(ranks, schedule, dataflow, rank, program),
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
    move_on(lanes_[i].progress, LaneState::AwaitsInputs);
  }
}

void RankExecutor::run_lane(Lane lane, std::stop_token stop) {
  LaneProgress& progress = lanes_[index_of(lane)].progress;
  try {
    for (std::uint64_t step = range_.begin; step < range_.end; ++step) {
      if (stop.stop_requested() || !run_step(lane, step, stop)) break;
    }
  } catch (const comm::Aborted&) {
    // Another rank says what happened.
  } catch (const std::exception& error) {
    throw ExecutionError(failure_at(lane, error.what(), std::current_exception()));
  } catch (...) {
    throw ExecutionError(failure_at(lane, "something that is no std::exception", std::current_exception()));
  }
  board_.retire(lane);
  move_on(progress, LaneState::Ended);
}

bool RankExecutor::run_step(Lane lane, std::uint64_t step, const std::stop_token& stop) {
  LaneProgress& progress = lanes_[index_of(lane)].progress;
  const std::size_t step_of_cycle = step % schedule_.num_steps();
  const std::span<const Action> actions = program_of(lane).step(step_of_cycle);
  progress.step.store(step, std::memory_order_relaxed);
  move_on(progress, LaneState::AwaitsInputs);
  if (!board_.begin_step(lane, step)) return false;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const ActionRun run{.action = actions[i], .step = step, .first_step = first_step_, .stop = stop};
    if (!run_action(lane, run, program_of(lane).step_begin(step_of_cycle) + i)) return false;
  }
  return true;
}

bool RankExecutor::run_action(Lane lane, const ActionRun& run, std::size_t position) {
  LaneWork& work = lanes_[index_of(lane)];
  work.progress.position.store(position, std::memory_order_relaxed);
  move_on(work.progress, LaneState::AwaitsInputs);
  dataflow_.inputs(rank_, run.action, work.values);
  if (!board_.wait(lane, work.values, run.step)) return false;

  const double start = seconds_now();
  // What would work on a step before the first has nothing to work on; gradients pass on as they are.
  if (run.has_data_step() || run.action.type == ActionType::Precondition) perform(run, work.progress);
  if (run.step >= range_.timed_begin && run.step < range_.timed_begin + schedule_.num_steps()) {
    times_[index_of(lane)][position] = {start, seconds_now()};
  }
  dataflow_.outputs(rank_, run.action, work.values);
  board_.publish(work.values, run.step);
  return true;
}

void RankExecutor::perform(const ActionRun& run, LaneProgress& progress) {
  // An exchange is the program's own, but it waits for other ranks all the same.
  const bool exchanges = run.action.type == ActionType::ExchangeData;
  move_on(progress, exchanges ? LaneState::AwaitsRanks : LaneState::Works);
  std::optional<comm::Completion> completion = performer_.begin(run);
  if (!completion) return;
  move_on(progress, LaneState::AwaitsRanks);
  completion->wait();
  move_on(progress, LaneState::Works);
  performer_.communicated(run);
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
