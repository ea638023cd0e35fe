#include "plenum/train/run_beginning.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plenum/base/build_info.h"
#include "plenum/base/machine.h"
#include "plenum/packing/bounds.h"
#include "plenum/packing/packers.h"

namespace plenum::train {
namespace {

using nlohmann::ordered_json;

ordered_json program_details() {
  const base::BuildInfo info = base::build_info();
  return {{"version", info.version},
          {"compiler", info.compiler},
          {"build", info.build_type},
          {"cuda", info.cuda_toolkit}};
}

ordered_json machine_details(const Run& run, const RunSummary& summary) {
  const base::Machine machine = base::inspect_machine();
  return {{"cpu", machine.cpu_model},
          {"cores", machine.usable_cores},
          {"memory_bytes", machine.memory_bytes},
          {"gpu", summary.gpu},
          {"driver", summary.gpu.empty() ? "" : machine.nvidia_driver},
          {"processes", run.processes.count()}};
}

ordered_json layout_details(const RunSummary& summary) {
  return {{"ranks", summary.num_ranks},
          {"ranks_per_model", summary.ranks_per_model},
          {"threads_per_rank", summary.threads_per_rank},
          {"micro_batches_per_rank", summary.micro_batches_per_rank},
          {"pipeline", summary.pipeline}};
}

ordered_json memory_lines(const MemoryReport& memory) {
  ordered_json lines = ordered_json::array();
  for (const tensor::MemoryLayout::Line& line : memory.lines)
    lines.push_back({{"purpose", line.purpose}, {"bytes", line.bytes}});
  return {{"device", memory.device == tensor::Device::Cuda ? "cuda" : "cpu"},
          {"planned_bytes", memory.planned_bytes},
          {"outside_bytes", memory.outside_bytes},
          {"lines", lines}};
}

/// Of those that a model reads: the examples of a task may be several each.
packing::LengthHistogram lengths_of_sequences(const data::SequenceSource& source) {
  const data::TaskLabels* const labels = source.task_labels();
  if (labels == nullptr || labels->sequences_per_example() == 1) return source.histogram();
  packing::LengthHistogram histogram;
  histogram.counts.resize(static_cast<std::size_t>(labels->longest_sequence()) + 1);
  for (std::uint64_t id = 0; id < source.histogram().num_sequences(); ++id)
    for (const std::int32_t length : labels->sequence_lengths(id))
      ++histogram.counts[static_cast<std::size_t>(length)];
  return histogram;
}

/// The histogram in at most so many bins of equal width, the first of which begins at 1.
ordered_json length_details(const packing::LengthHistogram& histogram, std::int64_t max_length) {
  constexpr std::int64_t kMostBins = 64;
  const std::int64_t bin_width = (max_length + kMostBins - 1) / kMostBins;
  std::vector<std::uint64_t> bins(static_cast<std::size_t>((max_length + bin_width - 1) / bin_width), 0);
  for (std::size_t length = 1; length < histogram.counts.size(); ++length)
    bins[std::min(bins.size() - 1, (length - 1) / static_cast<std::size_t>(bin_width))] +=
        histogram.counts[length];
  return {{"sequences", histogram.num_sequences()},
          {"tokens", histogram.num_tokens()},
          {"max_length", max_length},
          {"bin_width", bin_width},
          {"bins", bins}};
}

ordered_json packing_details(const packing::PackingPlan& plan, const packing::LengthHistogram& histogram) {
  const packing::LowerBound bound =
      packing::combinatorial_bound({.histogram = histogram, .capacity = plan.capacity, .depth = plan.depth});
  std::vector<std::uint64_t> packs_of_depth;  // by the number of their sequences
  for (const packing::PackPattern& pattern : plan.patterns) {
    packs_of_depth.resize(std::max(packs_of_depth.size(), pattern.lengths.size() + 1), 0);
    packs_of_depth[pattern.lengths.size()] += pattern.count;
  }
  return {{"capacity", plan.capacity},
          {"depth", plan.depth},
          {"packs", plan.num_packs()},
          {"efficiency", packing::packing_efficiency(plan, histogram.num_tokens())},
          {"bound", bound.packs},
          {"proof", bound.proof},
          {"packs_of_depth", packs_of_depth}};
}

/// What each replica has to do in a few steps, as a share of the mean.
ordered_json balance_details(const data::StepBatchSource& batches, std::uint64_t num_steps) {
  constexpr std::uint64_t kSteps = 8;
  const std::uint64_t count = std::max<std::uint64_t>(1, std::min(kSteps, num_steps));
  std::vector<double> mean_of_rank(batches.num_ranks(), 0);
  double busiest = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const data::StepShares shares = batches.share(i * num_steps / count);
    std::vector<double> costs;
    double sum = 0;
    for (const std::vector<std::size_t>& items : shares.items_of_rank) {
      costs.push_back(0);
      for (const std::size_t item : items) costs.back() += shares.costs[item];
      sum += costs.back();
    }
    const double mean = sum / static_cast<double>(costs.size());
    if (mean <= 0) continue;
    for (std::size_t rank = 0; rank < costs.size(); ++rank)
      mean_of_rank[rank] += costs[rank] / mean / static_cast<double>(count);
    busiest += std::ranges::max(costs) / mean / static_cast<double>(count);
  }
  return {{"steps", count}, {"work_of_replica", mean_of_rank}, {"busiest", busiest}};
}

}  // namespace

ordered_json describe_beginning(const Run& run, const RunSummary& summary) {
  const data::StepBatchSource& batches = run.plan->batches();
  const packing::LengthHistogram& histogram = batches.sequences().histogram();
  ordered_json details = {{"first_step", summary.first_step},
                          {"num_steps", summary.num_steps},
                          {"steps_per_epoch", summary.steps_per_epoch},
                          {"program", program_details()},
                          {"machine", machine_details(run, summary)},
                          {"model",
                           {{"name", summary.model_name},
                            {"parameters", summary.num_parameters},
                            {"layers", summary.model.num_layers},
                            {"width", summary.model.width}}},
                          {"layout", layout_details(summary)},
                          {"tokens_per_step", summary.expected_tokens_per_step},
                          {"product_flops", summary.product_rate},
                          {"predicted_step_seconds", summary.predicted_step_seconds},
                          {"memory", memory_lines(summary.memory)},
                          {"lengths", length_details(lengths_of_sequences(batches.sequences()),
                                                     batches.sequences().max_length())}};
  if (const auto& plan = batches.packing_plan()) details["packing"] = packing_details(*plan, histogram);
  if (batches.num_ranks() > 1) details["balance"] = balance_details(batches, summary.num_steps);
  return details;
}

}  // namespace plenum::train
