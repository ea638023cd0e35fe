#include "plenum/plan/planned_schedule.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/plan/matrix_schedule.h"
#include "plenum/plan/simulated_step.h"
#include "plenum/plan/step_costs.h"
#include "plenum/schedule/fill/fill.h"

namespace plenum::plan {
namespace {

using schedule::Preconditioner;

/// The replicas that are written out have this schedule.
AbridgedSchedule replaced(const AbridgedSchedule& plain, schedule::Schedule written) {
  AbridgedSchedule result{.written = std::move(written), .whole = {}};
  result.whole = result.written;
  result.whole.problem.num_micro_batches = plain.whole.problem.num_micro_batches;
  for (std::size_t rank = plain.written.ranks.size(); rank < plain.whole.ranks.size(); ++rank) {
    schedule::RankProgram idle{.stages = plain.whole.ranks[rank].stages, .lanes = {}};
    for (schedule::LaneProgram& lane : idle.lanes) {
      for (std::size_t step = 0; step < result.written.num_steps(); ++step) lane.end_step();
    }
    result.whole.ranks.push_back(std::move(idle));
  }
  return result;
}

/// Nothing where the work finds no room in the bubbles.
std::optional<PlannedSchedule> filled(const Strategy& strategy, const describe::ModelDescription& model,
                                      const AbridgedSchedule& plain, const StepLimits& limits,
                                      const StepWork& step, const Cluster& cluster) {
  const std::unique_ptr<schedule::Filler> filler =
      bubble_filler(strategy.matrices, model, strategy.device, limits.capacity.rows);
  AbridgedSchedule changed = plain;
  filler->change(changed.whole.problem);
  const StepCosts costs(changed.whole, cost_options(strategy, model), step, cluster);
  const bool is_fresh = strategy.matrices.fill == BubbleFill::Fresh;
  try {
    schedule::FillResult result = schedule::fill(
        plain.written, *filler, costs,
        {.mode = is_fresh ? schedule::FillMode::Fresh : schedule::FillMode::Deferred, .drains = true});
    return PlannedSchedule{.steps = replaced(plain, std::move(result.schedule)),
                           .refresh_steps = result.refresh_steps,
                           .fills_bubbles = true};
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

}  // namespace

std::size_t num_written_replicas(const Strategy& strategy, std::size_t most_replicas) {
  constexpr std::size_t kMostUnlike = 16;
  return strategy.matrices.kind == Preconditioner::None ? most_replicas
                                                        : std::max(most_replicas, kMostUnlike);
}

PlannedSchedule planned_schedule(const Strategy& strategy, const describe::ModelDescription& model,
                                 const batch::Work& typical, const StepLimits& limits, const StepWork& step,
                                 const Cluster& cluster, std::size_t most_replicas) {
  AbridgedSchedule plain = abridged_schedule(strategy, model, typical, limits.micro_batches_per_replica,
                                             num_written_replicas(strategy, most_replicas));
  const MatrixWork& work = strategy.matrices;
  if (work.kind == Preconditioner::None) return {.steps = std::move(plain)};
  if (strategy.depth > 1 && work.fill != BubbleFill::Off) {
    if (auto in_bubbles = filled(strategy, model, plain, limits, step, cluster)) return *in_bubbles;
  }
  const bool is_refreshed = work.kind != Preconditioner::Muon;
  return {.steps = replaced(plain, with_matrix_work(plain.written, work, strategy.device, model)),
          .refresh_steps = is_refreshed ? static_cast<double>(work.every) : 0};
}

}  // namespace plenum::plan
