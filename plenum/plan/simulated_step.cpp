#include "plenum/plan/simulated_step.h"

#include <algorithm>
#include <numeric>

#include "plenum/base/check.h"
#include "plenum/describe/flops.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/schedule/simulate/simulate.h"

namespace plenum::plan {

std::vector<StepWork> busiest_first(std::vector<StepWork> steps, std::size_t num_replicas,
                                    const describe::ModelDescription& model) {
  const describe::Flops flops(model);
  for (StepWork& step : steps) {
    const std::size_t of_replica = step.micro_batches.size() / num_replicas;
    std::vector<double> operations(num_replicas);
    for (std::size_t i = 0; i < step.micro_batches.size(); ++i) {
      batch::Work work = step.micro_batches[i].work;
      work.tokens = step.micro_batches[i].rows;
      operations[i / of_replica] += flops.forward(work);
    }
    std::vector<std::size_t> order(num_replicas);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return operations[a] > operations[b]; });
    StepWork sorted;
    for (const std::size_t replica : order) {
      const auto begin = step.micro_batches.begin() + static_cast<std::ptrdiff_t>(replica * of_replica);
      sorted.micro_batches.insert(sorted.micro_batches.end(), begin,
                                  begin + static_cast<std::ptrdiff_t>(of_replica));
    }
    step = std::move(sorted);
  }
  return steps;
}

StepCostOptions cost_options(const Strategy& strategy, const describe::ModelDescription& model) {
  return {.model = describe::tensor_parallel_slice(model, {.index = 0, .size = strategy.slices}),
          .update = strategy.update,
          .matrices = strategy.matrices,
          .reduced_bytes = strategy.reduced_bytes()};
}

SimulatedStep simulate_steps(const Strategy& strategy, const describe::ModelDescription& model,
                             const AbridgedSchedule& schedule, const std::vector<StepWork>& steps,
                             const Cluster& cluster) {
  base::check(!steps.empty(), "a step is simulated with some work");
  StepCosts costs(schedule.whole, cost_options(strategy, model), steps.front(), cluster);
  SimulatedStep result;
  const double share = 1 / static_cast<double>(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i > 0) costs.set_work(steps[i]);
    const schedule::Simulation simulation = schedule::simulate(schedule.written, costs);
    result.seconds += share * simulation.step_seconds;
    result.utilization += share * simulation.utilization;
    result.least_seconds =
        i == 0 ? simulation.step_seconds : std::min(result.least_seconds, simulation.step_seconds);
    result.most_seconds = std::max(result.most_seconds, simulation.step_seconds);
  }
  return result;
}

}  // namespace plenum::plan
