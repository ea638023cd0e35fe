#include "plenum/train/run_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/batch/capacity.h"
#include "plenum/data/batches/prefetch.h"
#include "plenum/describe/bert.h"
#include "plenum/optim/duration.h"
#include "plenum/pipeline/bert_memory.h"
#include "plenum/pipeline/bert_schedule.h"
#include "plenum/plan/process_memory.h"
#include "plenum/train/given_schedule.h"
#include "plenum/train/gpu_micro_batch.h"
#include "plenum/train/run_schedule.h"
#include "plenum/train/step_works.h"

namespace plenum::train {
namespace {

pipeline::BertProgramOptions program_options(const RunOptions& options, const describe::ModelConfig& model,
                                             const batch::Capacity& capacity,
                                             std::optional<base::Rank> rank) {
  return {.model = model,
          .capacity = capacity,
          .optimizer = options.optimizer.optimizer,
          .seed = static_cast<std::uint64_t>(options.run.seed),
          .tensor_parallel = options.mesh().slice_of(rank.value_or(base::Rank::at(0))),
          .device = options.run.device.value(),
          .num_threads = options.threads_per_rank(),
          .reduce_dtype = options.run.ranks > 1 ? options.run.reduce_dtype : tensor::DType::Float32};
}

std::optional<std::int64_t> most_sequences(const EvaluationSettings& settings) {
  return settings.sequences == 0 ? std::nullopt : std::optional(settings.sequences);
}

/// The one that is given, or all.
std::vector<plan::ProcessShare::Ranks> ranks_of(const Mesh& mesh, std::optional<base::Rank> only) {
  if (only) return {{.rank = *only}};
  std::vector<plan::ProcessShare::Ranks> ranks;
  for (std::size_t rank = 0; rank < mesh.num_ranks(); ++rank) ranks.push_back({.rank = base::Rank::at(rank)});
  return ranks;
}

static_assert(plan::kStepsOfBatches == data::Prefetch::kStepsAhead + 2,
              "those that are made ahead, one that is being made and one that is trained on");

/// What a process has beside the rank that is given, or all ranks.
struct Beside {
  std::optional<batch::Capacity> evaluated = {};
  std::optional<plan::LargestStep> largest = {};
};

MemoryReport plan_memory(const schedule::Schedule& schedule, const pipeline::BertProgramOptions& program,
                         const Mesh& mesh, std::optional<base::Rank> only, const Beside& beside) {
  pipeline::require_bert_schedule(schedule, program);
  const std::size_t num_micro_batches =
      schedule.problem.num_micro_batches / (only ? mesh.num_replicas() : std::size_t{1});
  return plan::process_memory(schedule, describe::describe_bert(program.model), mesh.num_slices(),
                              pipeline::request_of(program),
                              {.ranks = ranks_of(mesh, only),
                               .has_all_ranks = !only,
                               .num_micro_batches = num_micro_batches,
                               .evaluated = beside.evaluated,
                               .largest = beside.largest});
}

data::StepBatchSource make_batches(const RunOptions& options, const data::TrainingDataOptions& data,
                                   const data::SequenceSource& sequences, const describe::ModelConfig& model,
                                   double attention_cost = 1) {
  return {
      sequences,     data, model, options.mesh().num_replicas(), static_cast<std::uint64_t>(options.run.seed),
      attention_cost};
}

/// What a process takes with micro-batches of one size and another.
class MicroBatchMemory {
 public:
  /// Borrows all of them.
  MicroBatchMemory(const RunOptions& options, const describe::ModelConfig& model,
                   const data::StepBatchSource& batches, std::optional<base::Rank> rank,
                   std::optional<batch::Capacity> evaluated = std::nullopt)
      : options_(options), model_(model), batches_(batches), rank_(rank), evaluated_(evaluated) {}

  std::size_t planned_bytes(const data::MicroBatchCut& micro_batches) {
    const data::StepBounds bounds = batches_.bounds_with(micro_batches);
    return plan_memory(schedule_of(static_cast<std::size_t>(bounds.micro_batches_per_rank)),
                       program_options(options_, model_, bounds.capacity, rank_), options_.mesh(), rank_,
                       {.evaluated = evaluated_})
        .planned_bytes;
  }

 private:
  /// Sizes that follow each other have mostly the same.
  const schedule::Schedule& schedule_of(std::size_t micro_batches_per_rank) {
    const std::size_t num_micro_batches = batches_.num_ranks() * micro_batches_per_rank;
    if (!schedule_ || schedule_->problem.num_micro_batches != num_micro_batches) {
      schedule_ = make_schedule(options_, model_, typical_work(batches_.sequences(), options_.data),
                                micro_batches_per_rank);
    }
    return *schedule_;
  }

  const RunOptions& options_;
  const describe::ModelConfig& model_;
  const data::StepBatchSource& batches_;
  std::optional<base::Rank> rank_;              ///< of this process; none: all
  std::optional<batch::Capacity> evaluated_;    ///< of what is held out
  std::optional<schedule::Schedule> schedule_;  ///< of the size before
};

/// The largest of [least, end) that fits; least - 1 if there is none. Fewer tokens are more micro-batches,
/// and may need more memory. So it goes down from above in strides, and looks by halves within the last of
/// them only.
std::int64_t largest_that_fits(std::int64_t least, std::int64_t end,
                               const std::function<bool(std::int64_t)>& fits) {
  constexpr std::int64_t kMostStrides = 256;
  const std::int64_t stride = std::max<std::int64_t>((end - least) / kMostStrides, 1);
  std::int64_t too_large = end;
  std::int64_t largest = end - 1;
  while (largest >= least && !fits(largest)) {
    too_large = largest;
    largest = largest == least ? least - 1 : std::max(largest - stride, least);
  }
  while (largest >= least && largest + 1 < too_large) {
    const std::int64_t middle = std::midpoint(largest, too_large);
    (fits(middle) ? largest : too_large) = middle;
  }
  return largest;
}

using Fits = std::function<bool(const data::MicroBatchCut&)>;

/// Which size of micro-batches fits.
std::string advice_on_size(const data::StepBatchSource& batches, bool is_gpu, const Fits& fits) {
  const std::int64_t tokens = largest_that_fits(batches.least_micro_batch_tokens(), batches.capacity().rows,
                                                [&](std::int64_t size) { return fits({.tokens = size}); });
  if (tokens >= batches.least_micro_batch_tokens())
    return fmt::format("--micro-batch-tokens {} would fit", tokens);
  return fmt::format("no --micro-batch-tokens would fit: train a smaller model{}",
                     is_gpu ? "" : ", or on fewer ranks");
}

/// How many of equal cost fit: twice as many are half as large.
std::string advice_on_number(const data::StepBatchSource& batches, const Fits& fits) {
  const auto most = static_cast<std::int64_t>(batches.items_per_step());
  for (auto count = 2 * static_cast<std::int64_t>(batches.micro_batches_per_rank()); count <= 2 * most;
       count *= 2) {
    if (fits({.count = count})) return fmt::format("--micro-batches {} would fit", count);
  }
  return "no --micro-batches would fit: train a smaller model";
}

/// The data's options, with the micro-batches of a pipeline or a GPU where none are asked for.
data::TrainingDataOptions settle_data(const RunOptions& options, const data::SequenceSource& sequences,
                                      const describe::ModelConfig& model, std::optional<base::Rank> rank,
                                      const std::optional<schedule::Schedule>& given) {
  data::TrainingDataOptions data = options.data;
  if (data.micro_batches) return data;
  if (given) {
    const std::size_t num_replicas = options.mesh().num_replicas();
    data.micro_batches =
        static_cast<std::int64_t>(std::max<std::size_t>(given->problem.num_micro_batches / num_replicas, 1));
    return data;
  }
  const bool is_pipeline = options.mesh().depth() > 1;
  const bool is_settled = data.micro_batch_tokens || options.run.device == tensor::Device::Cpu;
  if (!is_pipeline && (is_settled || tensor::cuda_obstacle())) return data;
  const data::StepBatchSource batches = make_batches(options, data, sequences, model);
  if (is_pipeline) {
    data.micro_batches = default_micro_batches(options, batches);
    return data;
  }
  MicroBatchMemory memory(options, model, batches, rank);
  data.micro_batch_tokens =
      gpu_micro_batch_tokens(tensor::cuda_device_info(), sequences.max_length(),
                             [&](std::int64_t tokens) { return memory.planned_bytes({.tokens = tokens}); });
  return data;
}

}  // namespace

RunPlan::RunPlan(const RunOptions& options, const TrainingData& data, const describe::ModelConfig& model,
                 std::optional<base::Rank> rank, double attention_cost,
                 std::optional<schedule::Schedule> given)
    : options_(options),
      data_(data),
      mesh_(options.mesh()),
      rank_(rank),
      batches_(make_batches(options, settle_data(options, data.training(), model, rank, given),
                            data.training(), model, attention_cost)),
      schedule_(given ? std::move(*given)
                      : make_schedule(options, model, typical_work(data.training(), options.data),
                                      batches_.micro_batches_per_rank())),
      program_(program_options(options, model, batches_.capacity(), rank)),
      num_steps_(optim::num_steps(options.run.steps, length(), "steps")),
      checkpoint_every_(interval_of(options.checkpoint.every, "checkpoint-every")) {
  if (options.has_schedule_file())
    require_fitting(schedule_, options, batches_.micro_batches_per_rank(), program_);
  base::require(num_steps_ > 0, "steps must be more than none: {}", optim::to_string(options.run.steps));
  learning_rate_.emplace(options.optimizer.learning_rate, num_steps_, length());
  base::require(options.evaluation.stop_when_worse == 0 || data.held_out() != nullptr,
                "--stop-when-worse {} needs held-out data, and {} has none; {}",
                options.evaluation.stop_when_worse, data.name(), data.held_out_advice());
  if (data.held_out() == nullptr) return;
  held_out_.emplace(*data.held_out(),
                    data::EvaluationOptions{.masking = options.data.masking(),
                                            .max_sequences = most_sequences(options.evaluation)});
  evaluate_every_ = options.evaluation.every ? interval_of(*options.evaluation.every, "eval-every")
                                             : default_evaluation_interval();
}

Interval RunPlan::interval_of(const optim::Duration& every, std::string_view what) const {
  if (every.unit == optim::DurationUnit::Seconds)
    return {.seconds = every.amount > 0 ? every.amount : RunCadence::kNever};
  return {.steps = optim::num_steps(every, length(), what, num_steps_)};
}

/// A curve of ten points, or more where they would be far apart; but evaluating is to take a twentieth of the
/// time at most, and a forward pass is a third of training.
Interval RunPlan::default_evaluation_interval() const {
  constexpr double kPoints = 10;
  constexpr double kMostSeconds = 600;
  constexpr double kTimesAsLong = 20;
  constexpr double kShareOfForward = 1.0 / 3;
  const packing::LengthHistogram& lengths = data_.held_out()->histogram();
  const auto held_out = static_cast<double>(lengths.num_sequences());
  const double evaluated = std::min(
      held_out, static_cast<double>(most_sequences(options_.evaluation).value_or(lengths.num_sequences())));
  const double tokens = evaluated * static_cast<double>(lengths.num_tokens()) / held_out;
  const double least = kTimesAsLong * kShareOfForward * tokens / batches_.expected_tokens_per_step();
  const double steps = std::max(static_cast<double>(num_steps_) / kPoints, least);
  // Where --stop-when-worse ends a run is not to depend on how fast it is.
  const bool is_by_steps_alone = options_.evaluation.stop_when_worse > 0;
  return {.steps = static_cast<std::uint64_t>(std::ceil(std::min(steps, static_cast<double>(num_steps_)))),
          .seconds = is_by_steps_alone ? RunCadence::kNever : kMostSeconds};
}

optim::RunLength RunPlan::length() const {
  const auto steps = static_cast<double>(batches_.steps_per_epoch());
  return {.steps_per_epoch = batches_.steps_per_epoch(),
          .tokens_per_step = batches_.expected_tokens_per_step(),
          .sequences_per_step = static_cast<double>(data_.training().histogram().num_sequences()) / steps};
}

std::optional<base::Rank> RunPlan::replica() const {
  if (!rank_) return std::nullopt;
  return mesh_.replica_of(*rank_);
}

/// Ranks of a pipeline have different layers, and different numbers of micro-batches at a time.
void RunPlan::add_largest_rank(MemoryReport& report) const {
  if (mesh_.depth() == 1) return;
  pipeline::BertProgramOptions program = program_;
  for (std::size_t i = 0; i < mesh_.ranks_per_replica(); ++i) {
    const base::Rank rank = base::Rank::at(i);
    program.tensor_parallel = mesh_.slice_of(rank);
    const std::size_t bytes =
        pipeline::BertProgram::plan_memory(schedule_, mesh_.place_of(rank), program).num_bytes();
    if (!report.largest_rank || bytes > report.largest_rank->bytes) report.largest_rank = {rank, bytes};
  }
}

std::optional<batch::Capacity> RunPlan::evaluated() const {
  return held_out_ ? std::optional(held_out_->capacity()) : std::nullopt;
}

MemoryReport RunPlan::memory() const {
  MemoryReport report = plan_memory(schedule_, program_, mesh_, rank_, {.evaluated = evaluated()});
  add_largest_rank(report);
  return report;
}

MemoryReport RunPlan::memory_of_steps() const {
  constexpr std::uint64_t kSteps = 8;
  const std::uint64_t count = std::min(kSteps, num_steps_);
  std::vector<plan::StepWork> steps;
  for (std::uint64_t i = 0; i < count; ++i)
    steps.push_back(step_work(batches_, batches_.share(i * num_steps_ / count)));
  MemoryReport report =
      plan_memory(schedule_, program_, mesh_, rank_,
                  {.evaluated = evaluated(), .largest = plan::largest_step(steps, batches_.capacity())});
  add_largest_rank(report);
  return report;
}

schedule::Schedule RunPlan::plain_schedule() const {
  return make_plain_schedule(options_, program_.model, typical_work(data_.training(), options_.data),
                             batches_.micro_batches_per_rank());
}

std::size_t RunPlan::bytes_with(const schedule::Schedule& schedule, std::optional<base::Rank> rank) const {
  return plan_memory(schedule, program_, mesh_, rank, {.evaluated = evaluated()}).planned_bytes;
}

void RunPlan::require_memory(std::uint64_t available_bytes) const {
  const MemoryReport planned = memory();
  if (available_bytes == 0 || planned.planned_bytes <= available_bytes) return;
  MicroBatchMemory memory(options_, program_.model, batches_, rank_, evaluated());
  const auto fits = [&](const data::MicroBatchCut& cut) {
    return memory.planned_bytes(cut) <= available_bytes;
  };
  const bool is_gpu = program_.device == tensor::Device::Cuda;
  const std::string advice = options_.has_schedule_file()       ? "give a --schedule that keeps less alive"
                             : batches_.divides_micro_batches() ? advice_on_number(batches_, fits)
                                                                : advice_on_size(batches_, is_gpu, fits);
  const std::string available = base::format_bytes(available_bytes);
  base::fail(
      "the run needs {} of memory and {}; {}{}", base::format_bytes(planned.planned_bytes),
      is_gpu ? fmt::format("the GPU has {} left", available) : available + " are available", advice,
      options_.run.recompute == schedule::Recomputation::Full ? "" : ", and --recompute full needs less");
}

}  // namespace plenum::train
