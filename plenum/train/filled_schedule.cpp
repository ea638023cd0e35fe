#include "plenum/train/filled_schedule.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/thread_pool.h"
#include "plenum/base/units.h"
#include "plenum/data/batches/prefetch.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/schedule/check/check.h"
#include "plenum/schedule/core/refreshes.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/schedule/simulate/measured_costs.h"
#include "plenum/schedule/simulate/simulate.h"
#include "plenum/schedule/text/schedule_text.h"
#include "plenum/train/bubble_work.h"
#include "plenum/train/hang_error.h"
#include "plenum/train/replicas.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/starting_model.h"

namespace plenum::train {
namespace {

using schedule::Action;
using schedule::Schedule;

/// How many steps run, and how many of them count.
struct MeasuredSteps {
  std::uint64_t num_warm_up = 0;
  std::uint64_t num_counted = 0;
};

/// The first take memory and fill caches. On a GPU they also try algorithms for every size that comes up, and
/// are short.
MeasuredSteps unfilled_steps(const RunPlan& plan) {
  const bool is_gpu = plan.program().device == tensor::Device::Cuda;
  return is_gpu ? MeasuredSteps{.num_warm_up = 6, .num_counted = 8}
                : MeasuredSteps{.num_warm_up = 1, .num_counted = 4};
}

/// A cycle to take memory, and one to measure.
MeasuredSteps filled_steps(const RunPlan& plan) {
  const std::size_t cycle = plan.schedule().num_steps();
  return {.num_warm_up = cycle, .num_counted = cycle};
}

/// Adds what actions take while the plan's steps run on all ranks.
void measure(const RunPlan& plan, const BubbleFilling& filling, const MeasuredSteps& steps,
             schedule::MeasuredCosts& costs) {
  Replicas replicas(plan.mesh(), plan.schedule(), plan.program(), filling.processes,
                    filling.options.hang_limit());
  replicas.on_stuck(
      [&](const pipeline::Failure& hang) { filling.observer.on_hang(pipeline::failure_text(hang)); });
  base::ThreadPool pool(plan.evaluation_threads());
  replicas.write_weights([&](const tensor::TensorView& weights_N) {
    write_starting_weights(filling.options.model, plan.program().model.task, replicas.parameters(),
                           plan.program().seed, pool, weights_N, [](std::string_view) {});
  });
  replicas.begin(0, 0);
  data::Prefetch batches(plan.batches(), 0, plan.replica(), filling.exchange);
  try {
    for (std::uint64_t step = 0; step < steps.num_warm_up + steps.num_counted; ++step) {
      replicas.begin_step(batches.take(), {.learning_rate = plan.learning_rate().at(step),
                                           .device_times = pipeline::DeviceTimes::Recorded});
      replicas.end_step();
      const MeasuredStep measured = replicas.measured();
      if (step >= steps.num_warm_up) costs.add(measured.times, measured.is_empty);
    }
  } catch (const pipeline::ExecutionError& error) {
    if (!error.failure().is_hang) throw;
    throw HangError(pipeline::failure_text(error.failure()));
  }
}

/// What processes have left of their memory beside the plan as it is.
class FreeMemory {
 public:
  /// Borrows the plan. By all processes.
  FreeMemory(const RunPlan& plan, const BubbleFilling& filling)
      : plan_(plan), unfilled_(plan.schedule()), is_alone_(filling.processes.is_alone()) {
    const std::size_t planned = plan.memory().planned_bytes;
    const std::string own =
        filling.available_bytes == 0
            ? "inf"
            : fmt::format("{}",
                          filling.available_bytes - std::min<std::size_t>(filling.available_bytes, planned));
    for (const std::string& bytes : filling.processes.of_all(own)) of_processes_.push_back(std::stod(bytes));
  }

  bool has_room_for(const Schedule& schedule) const {
    for (std::size_t i = 0; i < of_processes_.size(); ++i) {
      const auto rank = is_alone_ ? std::nullopt : std::optional(base::Rank::at(i));
      if (more_bytes(schedule, rank) > of_processes_[i]) return false;
    }
    return true;
  }
  /// Of each rank, if they share what their process has.
  double bytes_of_rank() const {
    const double least = *std::ranges::min_element(of_processes_);
    return is_alone_ ? least / static_cast<double>(plan_.mesh().num_ranks()) : least;
  }
  /// How much more than the plan the rank takes that takes the most.
  double most_more_bytes(const Schedule& schedule) const {
    double most = 0;
    for (std::size_t i = 0; i < plan_.mesh().num_ranks(); ++i)
      most = std::max(most, more_bytes(schedule, base::Rank::at(i)));
    return most;
  }

 private:
  double more_bytes(const Schedule& schedule, std::optional<base::Rank> rank) const {
    return static_cast<double>(plan_.bytes_with(schedule, rank)) -
           static_cast<double>(plan_.bytes_with(unfilled_, rank));
  }

  const RunPlan& plan_;
  Schedule unfilled_;
  bool is_alone_;
  std::vector<double> of_processes_;
};

schedule::FillMode mode_of(const RunOptions& options) {
  return options.fill() == BubbleFill::Fresh ? schedule::FillMode::Fresh : schedule::FillMode::Deferred;
}

/// What is to be filled, with what, and how much it may keep.
struct Bubbles {
  const Schedule& plain;  ///< steps without the work
  const BubbleWork& work;
  const FreeMemory& memory;
};

/// The freshest filling that there is memory for. Throws UserError if there is none.
schedule::FillResult fill_within(const Bubbles& bubbles, const schedule::CostModel& costs,
                                 schedule::FillMode mode) {
  // What is counted while work is placed is not to the byte what slots take.
  constexpr int kAttempts = 4;
  schedule::FillOptions options{.mode = mode, .drains = true};
  const FreeMemory& memory = bubbles.memory;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    schedule::FillResult result = schedule::fill(bubbles.plain, *bubbles.work.filler, costs, options);
    if (memory.has_room_for(result.schedule)) return result;
    options.max_kept_bytes = attempt == 0 ? memory.bytes_of_rank() : options.max_kept_bytes / 2;
  }
  base::fail("work that waits would take more than the {} that a rank has left",
             base::format_bytes(static_cast<std::uint64_t>(memory.bytes_of_rank())));
}

std::string text_of(const schedule::FillResult& filled, const Bubbles& bubbles,
                    const schedule::CostModel& costs) {
  const schedule::Simulation without = schedule::simulate(bubbles.plain, costs);
  constexpr double kMilli = 1e3;
  constexpr double kPercent = 100;
  const bool is_partial = filled.schedule.problem.has_partial_curvature;
  const std::string coverage =
      is_partial ? fmt::format(" of {:.0f} % of the rows (A) and {:.0f} % (B)",
                               kPercent * filled.coverage_a.mean, kPercent * filled.coverage_b.mean)
                 : "";
  return fmt::format(
      "{0}'s work fills the bubbles: a refresh{1} every {2}, {3} {4:.1f} steps old in the mean and {5} at "
      "most; a step should take {6:.1f} ms, {7:.1f} without {0}; ranks compute {8:.0f} % of the time "
      "instead of {9:.0f} %; what waits takes {10} more on a rank",
      bubbles.work.optimizer, coverage,
      filled.refresh_steps == 1 ? "step" : fmt::format("{:g} steps", filled.refresh_steps), bubbles.work.made,
      filled.mean_age, filled.max_age, kMilli * filled.filled_step_seconds, kMilli * without.step_seconds,
      kPercent * filled.utilization, kPercent * without.utilization,
      base::format_bytes(static_cast<std::uint64_t>(bubbles.memory.most_more_bytes(filled.schedule))));
}

/// Whether the bubbles of a schedule are filled as the run's would be now.
bool is_filled_so(const Schedule& kept, const Bubbles& bubbles, schedule::FillMode mode) {
  Schedule changed = bubbles.plain;
  bubbles.work.filler->change(changed.problem);
  const bool is_of_mode =
      mode == schedule::FillMode::Fresh ? takes_fresh_statistics(kept) : !kept.problem.has_partial_curvature;
  return is_of_mode && is_filled_from(kept, bubbles.plain) &&
         kept.problem.preconditioner == changed.problem.preconditioner &&
         kept.problem.num_factors == changed.problem.num_factors;
}

/// The schedule that the run has kept, by the first process; empty, and noted, if it is not of its steps.
std::string kept_schedule(const RunPlan& plan, const Bubbles& bubbles, const BubbleFilling& filling) {
  const std::string path = RunPaths(filling.options.run.directory).schedule;
  if (!io::path_exists(path)) return {};
  std::string reason = "is of other steps than the run's now";
  try {
    const Schedule kept = schedule::parse_schedule_text(io::read_file(path), path);
    const bool is_unfilled = kept == plan.schedule();  // there was no room for the work
    if (is_unfilled || is_filled_so(kept, bubbles, mode_of(filling.options))) {
      schedule::require_checked(kept);
      if (bubbles.memory.has_room_for(kept)) {
        filling.observer.on_note(is_unfilled
                                     ? fmt::format("{}, as {} has it", bubbles.work.outside, path)
                                     : fmt::format("{}'s work is where {} has it: a cycle of {} steps",
                                                   bubbles.work.optimizer, path, kept.num_steps()));
        return schedule::print_schedule_text(kept);
      }
      reason = "needs more memory than there is";
    }
  } catch (const base::UserError& error) {
    reason = fmt::format("cannot be used ({})", error.what());
  }
  filling.observer.on_note(fmt::format("{} {}; a new one is made", path, reason));
  return {};
}

/// Work in the bubbles, if it finds room there; a note says why not.
std::optional<schedule::FillResult> try_to_fill(const Bubbles& bubbles, const schedule::CostModel& costs,
                                                const BubbleFilling& filling) {
  try {
    schedule::FillResult filled = fill_within(bubbles, costs, mode_of(filling.options));
    schedule::require_checked(filled.schedule);
    return filled;
  } catch (const base::UserError& error) {
    filling.observer.on_note(fmt::format("{}: {}", bubbles.work.outside, error.what()));
    return std::nullopt;
  }
}

/// A new one, from the first process, with a note; empty if the work finds no room.
std::string new_schedule(const Bubbles& bubbles, const schedule::CostModel& costs,
                         const BubbleFilling& filling) {
  std::string text;
  if (filling.processes.is_first()) {
    if (const auto filled = try_to_fill(bubbles, costs, filling)) {
      filling.observer.on_note(text_of(*filled, bubbles, costs));
      text = schedule::print_schedule_text(filled->schedule);
    }
  }
  return filling.processes.from_first(text);
}

/// The steps with the work right behind what it needs, in every step, so that all of it can be measured.
Schedule with_work_at_once(const Bubbles& bubbles) {
  Schedule schedule = schedule::with_periodic_refresh(bubbles.plain, *bubbles.work.filler, 1);
  schedule::require_checked(schedule);
  return schedule;
}

/// The same with measured costs: of steps without filling, and then of the steps that these let expect. In
/// bubbles work runs beside other ranks' passes and partly in pieces, and so takes other times than alone.
std::string new_schedule_by_measuring(RunPlan& plan, const Bubbles& bubbles, const BubbleFilling& filling) {
  const Schedule own = plan.schedule();
  const Schedule unfilled = with_work_at_once(bubbles);
  if (!bubbles.memory.has_room_for(unfilled)) {
    if (filling.processes.is_first())
      filling.observer.on_note(fmt::format("{}: there is no memory for more", bubbles.work.outside));
    return {};
  }
  plan.run_by(unfilled);
  schedule::MeasuredCosts alone(unfilled);
  measure(plan, filling, unfilled_steps(plan), alone);
  plan.run_by(own);
  std::string text;
  if (filling.processes.is_first()) {
    if (const auto filled = try_to_fill(bubbles, alone, filling))
      text = schedule::print_schedule_text(filled->schedule);
  }
  text = filling.processes.from_first(text);
  if (text.empty()) return text;
  const Schedule tried = schedule::parse_schedule_text(text, "the schedule that is tried");
  plan.run_by(tried);
  schedule::MeasuredCosts in_bubbles(tried, &alone);
  measure(plan, filling, filled_steps(plan), in_bubbles);
  plan.run_by(own);
  return new_schedule(bubbles, in_bubbles, filling);
}

bool is_second_order(const Action& action) {
  return schedule::traits_of(action.type).may_be_stale ||
         action.type == schedule::ActionType::AccumulateFactor ||
         action.type == schedule::ActionType::GatherPreconditioned;
}

}  // namespace

bool takes_fresh_statistics(const Schedule& filled) {
  return std::ranges::all_of(filled.ranks, [](const schedule::RankProgram& rank) {
    return std::ranges::all_of(rank.lane(schedule::Lane::Compute).actions(), [](const Action& action) {
      return !schedule::is_curvature(action.type) || action.age == 0;
    });
  });
}

bool is_filled_from(const Schedule& filled, const Schedule& plain) {
  schedule::Problem problem = filled.problem;
  problem.preconditioner = plain.problem.preconditioner;
  problem.num_factors = plain.problem.num_factors;
  problem.staleness = plain.problem.staleness;
  problem.has_partial_curvature = plain.problem.has_partial_curvature;
  if (problem != plain.problem || filled.ranks.size() != plain.ranks.size()) return false;
  for (std::size_t rank = 0; rank < plain.ranks.size(); ++rank) {
    if (filled.ranks[rank].stages != plain.ranks[rank].stages) return false;
    for (std::size_t lane = 0; lane < schedule::kNumLanes; ++lane) {
      for (std::size_t step = 0; step < filled.num_steps(); ++step) {
        std::vector<Action> own;
        std::ranges::copy_if(filled.ranks[rank].lanes[lane].step(step), std::back_inserter(own),
                             [](const Action& action) { return !is_second_order(action); });
        if (!std::ranges::equal(own, plain.ranks[rank].lanes[lane].step(0))) return false;
      }
    }
  }
  return true;
}

void fill_bubbles(RunPlan& plan, const BubbleFilling& filling) {
  if (filling.options.fill() == BubbleFill::Off) return;
  const Processes& processes = filling.processes;
  const Schedule plain = plan.plain_schedule();
  const BubbleWork work = bubble_work(plan);
  const FreeMemory memory(plan, filling);
  const Bubbles bubbles{.plain = plain, .work = work, .memory = memory};
  std::string text;
  if (filling.is_resumed && processes.is_first()) text = kept_schedule(plan, bubbles, filling);
  text = processes.from_first(text);
  if (text.empty()) {
    text = filling.costs == nullptr ? new_schedule_by_measuring(plan, bubbles, filling)
                                    : new_schedule(bubbles, *filling.costs, filling);
  }
  if (!text.empty()) plan.run_by(schedule::parse_schedule_text(text, "the schedule of the run"));
}

}  // namespace plenum::train
