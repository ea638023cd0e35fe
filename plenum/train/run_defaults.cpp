#include "plenum/train/run_defaults.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/data/tasks/task_scores.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/io/directory.h"
#include "plenum/plan/gradient_buckets.h"
#include "plenum/tensor/cuda_device.h"
#include "plenum/train/fine_tuning.h"
#include "plenum/train/starting_model.h"
#include "plenum/workspace/attention.h"
#include "plenum/workspace/rows.h"

namespace plenum::train {
namespace {

/// A run of fewer steps than these has batches of so many tokens.
struct BatchOfLength {
  double steps;
  std::uint64_t tokens;
};
constexpr std::array<BatchOfLength, 2> kBatches = {{{10'000, 8'192}, {100'000, 32'768}}};
constexpr std::uint64_t kLargestBatch = 131'072;
constexpr std::uint64_t kLeastBatch = 256;
constexpr std::uint64_t kLeastStepsPerEpoch = 8;

/// How many steps a run has with batches of so many tokens.
double steps_of(const optim::Duration& length, double batch_tokens, double epoch_tokens,
                double epoch_sequences) {
  switch (length.unit) {
    case optim::DurationUnit::Tokens:
      return length.amount / batch_tokens;
    case optim::DurationUnit::Sequences:
      return length.amount * epoch_tokens / epoch_sequences / batch_tokens;
    case optim::DurationUnit::Epochs:
      return length.amount * epoch_tokens / batch_tokens;
    default:
      return length.amount;
  }
}

/// Whether the driver of NVIDIA's GPUs shows one here, whatever this build can do with it.
bool is_gpu_visible() {
  return io::path_exists("/dev/nvidia0");
}

/// Why the GPU's kernels do not take a model of this shape.
std::optional<std::string> shape_obstacle(const describe::ModelConfig& model) {
  try {
    workspace::require_head_width(model.head_width());
    workspace::require_row_width(model.width);
    return std::nullopt;
  } catch (const base::UserError& error) {
    return error.what();
  }
}

/// The first of the task's metrics.
void settle_metric(RunOptions& options, const TrainingData& data, const Note& on_choice) {
  if (data.scored() == nullptr || !options.task.metric.empty()) return;
  options.task.metric = data::score_names(data.scored()->examples().task).front();
  on_choice(fmt::format("the best checkpoint is that of the best {} (--metric)", options.task.metric));
}

/// How much lower the learning rate of a trained model is, which is to keep what it knows.
constexpr double kContinuedShare = 0.25;

}  // namespace

double default_learning_rate(const describe::ModelConfig& model, optim::OptimizerKind optimizer) {
  constexpr double kScale = 0.018;
  constexpr double kMatrixScale = 0.05;
  // Layers from which on models diverge at lower rates, and at still lower ones.
  constexpr double kShallow = 4;
  constexpr double kDeep = 12;
  const auto layers = static_cast<double>(model.num_layers);
  const double depth = std::max(1.0, layers / kShallow) * std::max(1.0, layers / kDeep);
  const double scale = optim::has_layer_update(optimizer) ? kMatrixScale : kScale;
  const double rate = scale / (std::sqrt(static_cast<double>(model.width)) * depth);
  const double digit = std::pow(10, std::floor(std::log10(rate)) - 1);  // of two digits
  return std::round(rate / digit) * digit;
}

std::uint64_t default_batch_tokens(const optim::Duration& length, std::uint64_t epoch_tokens,
                                   std::uint64_t epoch_sequences) {
  std::uint64_t tokens = kLargestBatch;
  for (const BatchOfLength& batch : kBatches) {
    const double steps =
        steps_of(length, static_cast<double>(batch.tokens), static_cast<double>(epoch_tokens),
                 static_cast<double>(std::max<std::uint64_t>(1, epoch_sequences)));
    if (steps >= batch.steps) continue;
    tokens = batch.tokens;
    break;
  }
  return std::clamp(std::bit_floor(epoch_tokens / kLeastStepsPerEpoch), kLeastBatch, tokens);
}

tensor::Device settle_device(const DeviceChoice& choice, const describe::ModelConfig& model,
                             std::int64_t ranks, const Note& note) {
  if (choice) return *choice;
  std::optional<std::string> obstacle = tensor::cuda_obstacle();
  if (obstacle && !is_gpu_visible()) return tensor::Device::Cpu;
  if (!obstacle && ranks > 1)
    obstacle =
        "ranks of one process run on the CPU; --gpus starts a process for each GPU, --share-gpu lets them "
        "share one";
  if (!obstacle) obstacle = shape_obstacle(model);
  if (!obstacle) return tensor::Device::Cuda;
  note(fmt::format("the CPU computes, and the GPU of this machine is not used: {}", *obstacle));
  return tensor::Device::Cpu;
}

RunOptions settle_defaults(RunOptions options, const TrainingData& data, std::int64_t ranks_here,
                           const Note& on_choice, const Note& note) {
  std::optional<double>& rate = options.optimizer.learning_rate.peak;
  settle_metric(options, data, on_choice);
  const bool has_buckets = options.mesh().num_replicas() == 1 || options.run.bucket_bytes;
  if (options.run.device && rate && !options.data.global_batch.empty() && has_buckets) return options;
  if (!options.run.device) {
    const std::int64_t num_apart = options.run.share_gpu ? 1 : ranks_here;
    options.run.device = settle_device({}, starting_model(options.model, data), num_apart, note);
  }
  if (!rate && options.task.kind) {
    rate = fine_tuning_learning_rate(starting_model(options.model, data));
    on_choice(fmt::format("learning rate {:g}, by the size of the model (--learning-rate)", *rate));
  }
  if (!rate) {
    const bool is_continued = !options.model.init.empty();
    rate =
        (is_continued ? kContinuedShare : 1) *
        default_learning_rate(starting_model(options.model, data), options.optimizer.optimizer.update_kind());
    on_choice(fmt::format("learning rate {:g}, by the size of the model{} (--learning-rate)", *rate,
                          is_continued ? ", a quarter because it is trained already" : ""));
  }
  if (options.data.global_batch.empty()) {
    const std::uint64_t tokens =
        default_batch_tokens(options.run.steps, data.training().histogram().num_tokens(),
                             data.training().histogram().num_sequences());
    options.data.global_batch = fmt::format("{}tok", tokens);
    on_choice(fmt::format("batches of {} tokens, by the length of the run (--global-batch)",
                          base::format_count(tokens)));
  }
  if (!has_buckets) {
    options.run.bucket_bytes = plan::kBucketBytes;
    const describe::ParameterTable table(describe::describe_bert(starting_model(options.model, data)));
    const std::size_t num_buckets = plan::num_gradient_buckets(table, plan::kBucketBytes);
    on_choice(fmt::format("gradients are summed over ranks in {}, of {} or a layer at most (--bucket-bytes)",
                          num_buckets == 1 ? "one bucket" : fmt::format("{} buckets", num_buckets),
                          base::format_bytes(plan::kBucketBytes)));
  }
  return options;
}

}  // namespace plenum::train
