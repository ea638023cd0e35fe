#include "plenum/train/step_prediction.h"

#include <algorithm>
#include <string>
#include <utility>

#include "plenum/calibrate/calibration.h"
#include "plenum/describe/bert.h"
#include "plenum/plan/link.h"
#include "plenum/plan/simulated_step.h"
#include "plenum/train/step_works.h"

namespace plenum::train {
namespace {

plan::StepCostOptions costs_of(const RunPlan& plan) {
  return plan::cost_options(plan.strategy(), describe::describe_bert(plan.program().model));
}

plan::StepWork work_of(const RunPlan& plan, std::uint64_t step) {
  return step_work(plan.batches(), plan.batches().share(step));
}

/// A step whose micro-batches are all what those of this one are in the mean; empty ones left out.
plan::StepWork evened_out(const plan::StepWork& step) {
  plan::MicroBatchWork sum;
  std::int64_t count = 0;
  for (const plan::MicroBatchWork& micro_batch : step.micro_batches) {
    if (micro_batch.rows == 0) continue;
    ++count;
    sum.rows += micro_batch.rows;
    sum.work += micro_batch.work;
  }
  count = std::max<std::int64_t>(count, 1);
  for (std::int64_t* const number :
       {&sum.rows, &sum.work.tokens, &sum.work.squared_lengths, &sum.work.sequences})
    *number = (*number + count - 1) / count;
  for (std::int64_t& labels : sum.work.labels) labels = (labels + count - 1) / count;
  return {std::vector(step.micro_batches.size(), sum)};
}

/// Nothing is known of what computes, so that only what is to be computed counts.
plan::Cluster unknown_cluster(const RunPlan& plan) {
  plan::Cluster cluster{.name = "this machine",
                        .provenance = plan::Provenance::Measured,
                        .devices_per_node = plan.mesh().num_ranks(),
                        .kind = plan.program().device,
                        .threads = plan.program().num_threads};
  cluster.device.peak_flops = cluster.device.peak_bytes_per_second = 1;
  cluster.within_node = cluster.between_nodes = {.latency_seconds = 0, .bytes_per_second = 1};
  return cluster;
}

std::vector<plan::Op> typical_ops(const RunPlan& plan) {
  const plan::Cluster unknown = unknown_cluster(plan);
  return plan::StepCosts(plan.schedule(), costs_of(plan), evened_out(work_of(plan, 0)), unknown).ops();
}

/// With which an all-reduce comes closest to what it took.
plan::Link link_of(const std::vector<calibrate::MeasuredLink>& links) {
  const auto sums =
      std::ranges::find(links, calibrate::LinkOperation::AllReduce, &calibrate::MeasuredLink::operation);
  return sums == links.end() ? plan::Link{.latency_seconds = 0, .bytes_per_second = 1} : sums->link;
}

/// Of all processes, so that all measure the same.
std::size_t least_planned_bytes(const RunPlan& plan, const Processes& processes) {
  std::size_t least = plan.memory().planned_bytes;
  for (const std::string& bytes : processes.of_all(std::to_string(least)))
    least = std::min<std::size_t>(least, std::stoull(bytes));
  return least;
}

/// With messages that take a part of this memory at most: they are sent, received and copied in between.
calibrate::LinkTimerOptions links_within(std::size_t most_bytes) {
  constexpr std::size_t kCopies = 4;
  constexpr std::size_t kLeastSizes = 3;
  calibrate::LinkTimerOptions links;
  while (links.sizes.size() > kLeastSizes && kCopies * links.sizes.back() > most_bytes)
    links.sizes.pop_back();
  return links;
}

}  // namespace

StepPrediction::StepPrediction(const RunPlan& plan, plan::Cluster cluster)
    : plan_(plan),
      cluster_(std::move(cluster)),
      costs_(plan.schedule(), costs_of(plan), work_of(plan, 0), cluster_) {}

schedule::Simulation StepPrediction::simulate(std::uint64_t step) {
  costs_.set_work(work_of(plan_, step));
  return schedule::simulate(plan_.schedule(), costs_);
}

double StepPrediction::mean_seconds() {
  constexpr std::uint64_t kSteps = 8;
  const std::uint64_t count = std::min<std::uint64_t>(kSteps, plan_.num_steps());
  double sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum += seconds(i * plan_.num_steps() / count);
  return sum / static_cast<double>(count);
}

plan::Cluster measure_cluster(const RunPlan& plan, const Processes& processes, double seconds) {
  plan::Cluster cluster = unknown_cluster(plan);
  const std::size_t num_here = processes.is_alone() ? plan.mesh().num_ranks() : 1;
  const pipeline::BertProgramOptions& program = plan.program();
  calibrate::OpTimerOptions timer;
  timer.setting.hidden_dropout = program.model.hidden_dropout;
  timer.setting.attention_dropout = program.model.attention_dropout;
  timer.setting.vocabulary = program.model.vocabulary;
  // It is given back before the run takes its own, so that the peak is the run's.
  timer.most_bytes = least_planned_bytes(plan, processes) / num_here;
  timer.warm_up_seconds = program.device == tensor::Device::Cuda ? seconds / 4 : 0.0;
  cluster.device = calibrate::calibrate_ops(typical_ops(plan), program.device, program.num_threads, num_here,
                                            seconds, timer);
  if (program.device == tensor::Device::Cuda || plan.mesh().num_ranks() == 1) return cluster;
  const calibrate::LinkTimerOptions links = links_within(timer.most_bytes);
  if (processes.is_alone()) {
    cluster.within_node = link_of(calibrate::measure_local_link(num_here, links));
  } else {
    cluster.within_node = link_of(calibrate::measure_link(*processes.communicator(), links));
  }
  return cluster;
}

void slow_down(plan::Cluster& cluster, const plan::Link& emulated_link) {
  for (plan::Link* const link : {&cluster.within_node, &cluster.between_nodes})
    *link = plan::slower_of(*link, emulated_link);
}

}  // namespace plenum::train
