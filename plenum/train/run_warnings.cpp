#include "plenum/train/run_warnings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "plenum/base/units.h"
#include "plenum/data/batches/masking.h"

namespace plenum::train {
namespace {

using base::format_count;
using Warning = std::optional<std::string>;

std::string count_of(std::uint64_t count, std::string_view singular) {
  return fmt::format("{} {}{}", format_count(count), singular, count == 1 ? "" : "s");
}

Warning of_global_batch(const RunOptions& options, const RunPlan& plan) {
  const data::GlobalBatchSize size = options.data.global_batch_size();
  const bool in_tokens = size.unit == data::GlobalBatchSize::Unit::Tokens;
  const packing::LengthHistogram& histogram = plan.batches().sequences().histogram();
  const std::uint64_t there_are = in_tokens ? histogram.num_tokens() : histogram.num_sequences();
  if (size.amount <= there_are) return {};
  return fmt::format(
      "--global-batch {} is more than the dataset has, {}: every step trains on all of it, a whole epoch",
      options.data.global_batch, count_of(there_are, in_tokens ? "token" : "sequence"));
}

Warning of_ranks(const RunPlan& plan) {
  const std::uint64_t num_items = plan.batches().items_per_step();
  const Mesh& mesh = plan.mesh();
  if (mesh.num_replicas() <= num_items) return {};
  return fmt::format(
      "--ranks {} is more than a step has to share out, {} at most; nothing to do: {}; fewer ranks or a "
      "larger --global-batch are faster",
      mesh.num_ranks(), count_of(num_items, "part"),
      count_of((mesh.num_replicas() - num_items) * mesh.ranks_per_replica(), "rank"));
}

Warning of_pipeline(const RunOptions& options, const RunPlan& plan) {
  const std::size_t depth = plan.mesh().depth();
  if (depth == 1) {
    const bool is_without =
        (options.run.schedule.empty() || options.has_schedule_file()) && options.run.stage_layers.empty();
    return is_without ? Warning() : "--schedule and --stage-layers have no effect without --pp";
  }
  const std::size_t micro_batches = plan.batches().micro_batches_per_rank();
  if (micro_batches >= depth) return {};
  return fmt::format(
      "{} for a pipeline of {} ranks leave most of them idle; more --micro-batches or a larger "
      "--global-batch "
      "are faster",
      micro_batches == 1 ? std::string("1 micro-batch") : fmt::format("{} micro-batches", micro_batches),
      depth);
}

Warning of_learning_rate(const RunOptions& options, const RunPlan& plan, std::uint64_t step) {
  const optim::LearningRate& rate = plan.learning_rate();
  const std::uint64_t num_steps = plan.num_steps();
  std::uint64_t first = step;
  while (first < num_steps && rate.at(first) == 0) ++first;
  if (first == num_steps) {
    return fmt::format(
        "the learning rate is 0 in all steps that are left, so nothing is trained; change --warmup {} or "
        "--steps",
        optim::to_string(options.optimizer.learning_rate.warmup));
  }
  if (rate.num_warmup_steps() < num_steps) return {};
  return fmt::format(
      "--warmup {} is as long as the run, {}: the learning rate rises to the end and never falls",
      optim::to_string(options.optimizer.learning_rate.warmup), count_of(num_steps, "step"));
}

Warning of_learning_rate_schedule(const RunOptions& options) {
  using optim::LearningRateSchedule;
  const optim::LearningRateOptions& given = options.optimizer.learning_rate;
  const optim::LearningRateOptions usual;
  if (given.power != usual.power && given.schedule != LearningRateSchedule::Polynomial)
    return fmt::format("--power {} has no effect without --lr-schedule polynomial", given.power);
  if (given.decay != usual.decay && given.schedule != LearningRateSchedule::Wsd) {
    return fmt::format("--decay-duration {} has no effect without --lr-schedule wsd",
                       optim::to_string(given.decay));
  }
  return {};
}

/// Adam's moments begin anew, so the first steps may make a trained model worse (docs/training.md has
/// figures).
Warning of_continued_training(const RunOptions& options, const RunPlan& plan, std::uint64_t step) {
  constexpr std::uint64_t kFewSteps = 100;
  constexpr double kFewTokens = 500'000;
  if (options.task.kind || options.model.init.empty() || step > 0) return {};
  const double tokens = static_cast<double>(plan.num_steps()) * plan.batches().expected_tokens_per_step();
  if (plan.num_steps() >= kFewSteps && tokens >= kFewTokens) return {};
  return fmt::format(
      "{} of about {} tokens are few at a learning rate of {:g}: the model may end no better than {}; "
      "compare the two with plenum eval, and give more --steps or a lower --learning-rate",
      count_of(plan.num_steps(), "step"),
      format_count(static_cast<std::uint64_t>(plan.batches().expected_tokens_per_step())),
      options.optimizer.learning_rate.peak.value(), options.model.init);
}

/// The first evaluation is always the best so far.
Warning of_early_stop(const RunOptions& options, const RunPlan& plan) {
  const std::uint64_t every = plan.evaluate_every().steps;
  if (options.evaluation.stop_when_worse == 0 || std::isfinite(plan.evaluate_every().seconds)) return {};
  const std::uint64_t num_evaluations =
      every == 0 ? 1 : (plan.num_steps() + every - 1) / every;  // one at the end, too
  if (static_cast<std::uint64_t>(options.evaluation.stop_when_worse) + 1 < num_evaluations) return {};
  return fmt::format(
      "--stop-when-worse {} cannot end this run early, which has {}; a shorter --eval-every makes more",
      options.evaluation.stop_when_worse, count_of(num_evaluations, "evaluation"));
}

Warning of_trace(const ProcessSettings& process, std::uint64_t num_left) {
  const std::string& file = process.trace.empty() ? process.overlay : process.trace;
  if (file.empty() || static_cast<std::uint64_t>(process.drawn_step()) <= num_left) return {};
  return fmt::format("{} will not be drawn: --trace-step is {}, and {} left", file, process.drawn_step(),
                     num_left == 1 ? "1 step is" : fmt::format("{} steps are", num_left));
}

}  // namespace

std::optional<std::string> mask_rate_warning(double rate, const packing::LengthHistogram& lengths) {
  constexpr double kMostUsual = 0.5;
  if (rate <= kMostUsual) return {};
  const std::int64_t length =
      std::llround(static_cast<double>(lengths.num_tokens()) / static_cast<double>(lengths.num_sequences()));
  return fmt::format(
      "--mask-rate {} masks {} of the {} tokens of a mean sequence, [CLS] and [SEP] included: little is left "
      "to predict them from; 0.15 to 0.4 is usual",
      rate, data::masked_count(length, rate), length);
}

std::vector<std::string> warnings_of(const RunOptions& options, const RunPlan& plan,
                                     const TrainingState& state) {
  std::vector<std::string> warnings;
  for (const Warning& warning :
       {of_global_batch(options, plan), of_ranks(plan), of_pipeline(options, plan),
        options.task.kind ? Warning()
                          : mask_rate_warning(options.data.mask_rate, plan.batches().sequences().histogram()),
        of_learning_rate(options, plan, state.step), of_learning_rate_schedule(options),
        of_continued_training(options, plan, state.step), of_early_stop(options, plan),
        of_trace(options.run.process, plan.num_steps() - state.step)}) {
    if (warning) warnings.push_back(*warning);
  }
  return warnings;
}

std::optional<std::string> core_warning(const Processes& processes, std::size_t num_threads,
                                        std::size_t num_cores) {
  if (processes.is_alone()) return {};
  std::vector<std::int64_t> cores(processes.count());
  cores[processes.rank()->index()] = static_cast<std::int64_t>(num_cores);
  constexpr comm::Tag kTag = 0;
  processes.communicator()->start_all_reduce(comm::elements_of(std::span(cores)), kTag).wait();
  const auto threads = static_cast<std::int64_t>(num_threads);
  const auto has_too_few = [threads](std::int64_t of_rank) { return of_rank < threads; };
  const auto found = std::ranges::find_if(cores, has_too_few);
  if (found == cores.end() || !processes.is_first()) return {};
  return fmt::format(
      "{} of {} ranks may use fewer cores than they have threads, such as rank {}: {} and {}; start with "
      "mpirun --bind-to none or --map-by slot:PE={}, srun --cpus-per-task={}, or give fewer --threads",
      std::ranges::count_if(cores, has_too_few), cores.size(), found - cores.begin(),
      count_of(static_cast<std::uint64_t>(*found), "core"), count_of(num_threads, "thread"), threads,
      threads);
}

}  // namespace plenum::train
