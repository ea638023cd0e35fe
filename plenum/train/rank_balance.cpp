#include "plenum/train/rank_balance.h"

#include <string>

#include <fmt/format.h>

#include "plenum/train/attention_cost.h"

namespace plenum::train {
namespace {

bool is_worth_measuring(const RunPlan& plan) {
  constexpr double kLeastFlops = 1e11;  // seconds of a core, forward and backward
  const std::size_t num_replicas = plan.mesh().num_replicas();
  const bool is_divided = num_replicas > 1 || plan.batches().divides_micro_batches();
  return is_divided && plan.program().device == tensor::Device::Cpu &&
         plan.batches().flops_of(0) >= kLeastFlops * static_cast<double>(num_replicas);
}

/// How much more than the mean the busiest rank has in the first steps, on average.
double mean_excess(const RunPlan& plan, double attention_cost) {
  constexpr std::uint64_t kSteps = 16;
  double sum = 0;
  for (std::uint64_t step = 0; step < kSteps; ++step)
    sum += plan.batches().excess_of_busiest(step, attention_cost);
  return sum / kSteps;
}

}  // namespace

double choose_attention_cost(const RunPlan& by_operations,
                             base::FunctionRef<std::unique_ptr<RunPlan>(double)> plan_with,
                             const Processes& processes, const Note& note) {
  constexpr double kNoticed = 0.005;
  if (!is_worth_measuring(by_operations)) return 1;
  std::string text;
  if (processes.is_first()) {
    const describe::ModelConfig& model = by_operations.program().model;
    const std::int64_t max_length = by_operations.batches().sequences().max_length();
    text = fmt::format("{:.2f}", measure_sequence_cost(model, max_length).attention_cost(model));
  }
  const double measured = std::stod(processes.from_first(text));
  const double rounded = round_attention_cost(measured);
  const double excess = mean_excess(by_operations, measured);
  const bool is_better = mean_excess(*plan_with(rounded), measured) + kNoticed < excess;
  note(fmt::format(
      "attention takes {:g} times as long here as its operations: divided by operations, the busiest rank "
      "has "
      "{:.2f} % more work than the mean{}",
      measured, 100 * excess,
      is_better ? fmt::format("; so work is divided with attention at {:g} times", rounded) : ""));
  return is_better ? rounded : 1;
}

}  // namespace plenum::train
