#include "plenum/model/inference.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include "plenum/base/check.h"
#include "plenum/base/instruction_set.h"
#include "plenum/batch/capacity.h"
#include "plenum/batch/group_label.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/describe/bert.h"
#include "plenum/kernels/convert.h"
#include "plenum/kernels/linear.h"
#include "plenum/kernels/step_scalars.h"
#include "plenum/memory/forward_memory.h"
#include "plenum/memory/micro_batch_layout.h"
#include "plenum/model/bert.h"
#include "plenum/model/micro_batch_staging.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"
#include "plenum/model/read_rows.h"
#include "plenum/model/task_head.h"
#include "plenum/model/word_head.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/memory_plan.h"
#include "plenum/tensor/stream_owner.h"

namespace plenum::model {
namespace {

using base::LayerId;
using batch::GroupLabel;
using describe::LossKind;
using describe::ModelConfig;
using describe::ParameterTable;
using memory::ForwardMemory;
using memory::ForwardWeights;
using tensor::ConstTensorView;
using tensor::DType;
using tensor::TensorView;

std::int64_t correct_predictions(std::span<const std::int32_t> predictions,
                                 std::span<const std::int32_t> labels) {
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) correct += predictions[i] == labels[i];
  return correct;
}

std::int64_t correct_classes(const std::vector<float>& logits_MC, std::span<const std::int32_t> labels) {
  const auto width = std::ssize(logits_MC) / std::ssize(labels);
  std::vector<std::int32_t> greatest;
  for (auto row = logits_MC.begin(); row != logits_MC.end(); row += width)
    greatest.push_back(static_cast<std::int32_t>(std::max_element(row, row + width) - row));
  return correct_predictions(greatest, labels);
}

/// Groups whose answer has the greatest logit in every column, the first one of equals.
std::int64_t correct_groups(const std::vector<float>& logits_MC, std::span<const std::int32_t> labels) {
  const std::size_t num_columns = logits_MC.size() / labels.size();
  std::int64_t correct = 0;
  for (std::size_t begin = 0; begin < labels.size();) {
    std::size_t end = begin + 1;
    while (end < labels.size() && !GroupLabel::is_first(labels[end])) ++end;
    bool is_correct = true;
    for (std::size_t column = 0; column < num_columns; ++column) {
      std::size_t greatest = begin;
      for (std::size_t row = begin; row < end; ++row) {
        if (logits_MC[row * num_columns + column] > logits_MC[greatest * num_columns + column])
          greatest = row;
      }
      is_correct = is_correct && GroupLabel::is_answer(labels[greatest], static_cast<int>(column));
    }
    correct += is_correct;
    begin = end;
  }
  return correct;
}

}  // namespace

EvaluationSums& EvaluationSums::operator+=(const EvaluationSums& other) {
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    objectives[i].loss += other.objectives[i].loss;
    objectives[i].num_losses += other.objectives[i].num_losses;
    objectives[i].correct += other.objectives[i].correct;
  }
  return *this;
}

struct BertInference::State {
  State(const ModelConfig& model, const batch::Capacity& capacity, std::size_t num_threads,
        const BertWeights* borrowed, tensor::Device device)
      : table(describe::describe_bert(model)), owner(device, num_threads) {
    const ForwardWeights whose = borrowed != nullptr ? ForwardWeights::Borrowed : ForwardWeights::Own;
    tensor::MemoryPlan sizes(device);
    plan_forward_memory(table, capacity, num_threads, whose, sizes);
    arena.emplace(sizes.layout(), device);
    tensor::MemoryPlan views(*arena);
    memory = plan_forward_memory(table, capacity, num_threads, whose, views);
    if (memory.micro_batch) {
      staging.emplace(table.model(), memory::computed_capacity(capacity, device), memory.micro_batch);
    } else {
      staging.emplace(table.model());
    }
    layout = views.layout();
    weights = borrowed != nullptr ? *borrowed : weights_of(table, {memory.exact_N, memory.compute_N});
    stream.emplace(owner.stream(memory.scratch, views.precision()));
  }

  bool is_on_gpu() const { return stream->device() == tensor::Device::Cuda; }

  Pass pass(const batch::MicroBatch& micro_batch) {
    send_weights();
    return {*stream, table.model(), staging->put(micro_batch, is_on_gpu() ? &stream->cuda() : nullptr)};
  }
  /// What was written through weights() since the last call.
  void send_weights() {
    if (written_weights.empty()) return;
    tensor::copy(*stream, ConstTensorView(written_weights.data(), {table.num_elements()}), memory.exact_N);
    kernels::round_to_compute(*stream, {.x_N = memory.exact_N, .y_N = memory.compute_N});
    stream->wait();
    written_weights = {};
  }
  LayerId end() const { return LayerId::at(weights.layers.size()); }

  /// What lies on the device, after everything in the stream.
  template <typename Element>
  std::vector<Element> fetched(const TensorView& view) const {
    std::vector<Element> elements(static_cast<std::size_t>(view.num_elements()));
    tensor::copy(*stream, view, TensorView(elements.data(), view.shape()));
    stream->wait();
    return elements;
  }
  std::vector<float> fetched_compute(const TensorView& view) const {
    if (view.dtype() == DType::Float32) return fetched<float>(view);
    std::vector<float> values;
    std::ranges::transform(fetched<tensor::BFloat16>(view), std::back_inserter(values), tensor::to_float);
    return values;
  }

  /// How many labels, or groups of them, the logits of an objective predict.
  std::int64_t num_correct(std::size_t objective, std::span<const std::int32_t> labels) const {
    const HeadActivations& head = memory.model.activations.heads[objective];
    const auto count = std::ssize(labels);
    switch (table.model().heads[objective].objective.loss) {
      case LossKind::WordCrossEntropy:
        return correct_predictions(fetched<std::int32_t>(head.prediction_M.first_rows(count)), labels);
      case LossKind::ClassCrossEntropy:
        return correct_classes(fetched_compute(head.logits_MW.first_rows(count)), labels);
      case LossKind::SquaredError:
        return 0;
      case LossKind::GroupCrossEntropy:
        return correct_groups(fetched_compute(head.logits_MW.first_rows(count)), labels);
    }
    throw base::InternalError("a loss of no kind");
  }

  /// Of a task, once its head ran forward.
  std::vector<float> logits_of_task(const batch::MicroBatch& micro_batch) const {
    base::check(table.model().heads.front().objective.loss != LossKind::WordCrossEntropy,
                "the logits of words are not kept");
    const auto num_rows = std::ssize(micro_batch.objective(0).rows);
    if (num_rows == 0) return {};
    return fetched_compute(memory.model.activations.heads.front().logits_MW.first_rows(num_rows));
  }

  /// Of the first objective, behind the encoder, row by row without gaps.
  TensorView first_logits(const Pass& pass, const HeadActivations& head) const {
    constexpr std::size_t kFirst = 0;
    const HeadWeights& of_head = weights.heads[kFirst];
    const ConstTensorView x_MD = rows_of_objective(pass, memory.model.activations.read_RD, kFirst);
    if (pass.model.heads[kFirst].objective.loss != LossKind::WordCrossEntropy) {
      task_head_logits(pass, kFirst, of_head, x_MD, head);
      return head.logits_MW;
    }
    word_head_transform_forward(pass, of_head, x_MD, head);
    // Without the stride of logits that go into a loss.
    const std::int64_t V = of_head.output_weight.size(0);
    const TensorView logits_MV(head.logits_MW.raw(), head.logits_MW.dtype(), {pass.num_labels(kFirst), V});
    kernels::linear_forward(
        *stream,
        {.x_TD = head.y_MD, .w_ED = of_head.output_weight, .b_E = of_head.output_bias, .y_TE = logits_MV});
    return logits_MV;
  }

  ParameterTable table;
  tensor::StreamOwner owner;
  std::optional<tensor::Arena> arena;
  ForwardMemory memory;
  std::optional<MicroBatchStaging> staging;
  tensor::MemoryLayout layout;
  BertWeights weights;
  std::optional<tensor::Stream> stream;
  std::vector<float> written_weights;  ///< on the way to the GPU
};

BertInference::BertInference(const ModelConfig& config, const batch::Capacity& capacity,
                             std::size_t num_threads, tensor::Device device)
    : state_(std::make_unique<State>(config, capacity, num_threads, nullptr, device)) {
  base::require_kernel_instruction_set();
}

BertInference::BertInference(const ModelConfig& config, const batch::Capacity& capacity,
                             std::size_t num_threads, const BertWeights& weights, tensor::Device device)
    : state_(std::make_unique<State>(config, capacity, num_threads, &weights, device)) {
  base::require_kernel_instruction_set();
}

BertInference::~BertInference() = default;

const ParameterTable& BertInference::parameters() const {
  return state_->table;
}

TensorView BertInference::weights() {
  base::check(static_cast<bool>(state_->memory.exact_N), "the weights are borrowed");
  if (!state_->is_on_gpu()) return state_->memory.exact_N;
  if (state_->written_weights.empty()) {
    state_->written_weights = state_->fetched<float>(state_->memory.exact_N);
  }
  return {state_->written_weights.data(), {state_->table.num_elements()}};
}

const tensor::Stream& BertInference::stream() const {
  return *state_->stream;
}
const tensor::MemoryLayout& BertInference::memory() const {
  return state_->layout;
}

EvaluationSums BertInference::evaluate(const batch::MicroBatch& micro_batch, std::vector<float>* logits) {
  const Pass pass = state_->pass(micro_batch);
  const Activations& kept = state_->memory.model.activations;
  const TensorView& scalars_C = state_->memory.scalars_C;
  tensor::set_zero(*state_->stream, scalars_C);
  bert_forward(pass, state_->weights, kept, state_->memory.model.transients, {}, state_->end());
  add_losses(pass, kept, scalars_C);
  const std::vector<double> scalars = state_->fetched<double>(scalars_C);
  EvaluationSums sums;
  for (std::size_t i = 0; i < pass.model.heads.size(); ++i) {
    const std::vector<std::int32_t>& labels = micro_batch.objective(i).labels;
    if (labels.empty()) continue;
    ObjectiveSums& of = sums.objectives[i];
    const bool is_of_groups = pass.model.heads[i].objective.loss == LossKind::GroupCrossEntropy;
    of.loss = scalars[kernels::index_of(kernels::loss_of(i))];
    of.num_losses = is_of_groups ? batch::count_groups(labels) : std::ssize(labels);
    of.correct = state_->num_correct(i, labels);
  }
  if (logits != nullptr) *logits = state_->logits_of_task(micro_batch);
  return sums;
}

std::vector<float> BertInference::logits(const batch::MicroBatch& micro_batch) {
  const Pass pass = state_->pass(micro_batch);
  constexpr std::size_t kFirst = 0;  // the objective
  if (pass.num_labels(kFirst) == 0) return {};
  const Activations& kept = state_->memory.model.activations;
  bert_encoder_forward(pass, state_->weights, kept, state_->memory.model.transients, {}, state_->end());
  const TensorView logits_MW = state_->first_logits(pass, kept.heads[kFirst].of(pass.num_labels(kFirst)));
  return state_->fetched_compute(
      logits_MW.first_rows(static_cast<std::int64_t>(micro_batch.objective(kFirst).rows.size())));
}

}  // namespace plenum::model
