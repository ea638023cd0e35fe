#include "plenum/model/inference.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "plenum/base/check.h"
#include "plenum/base/instruction_set.h"
#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/describe/bert.h"
#include "plenum/kernels/convert.h"
#include "plenum/kernels/linear.h"
#include "plenum/kernels/step_numbers.h"
#include "plenum/model/activation_layout.h"
#include "plenum/model/bert.h"
#include "plenum/model/masked_language_head.h"
#include "plenum/model/micro_batch_staging.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"
#include "plenum/model/read_rows.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/memory_plan.h"
#include "plenum/tensor/stream_owner.h"

namespace plenum::model {
namespace {

using base::LayerId;
using describe::ModelConfig;
using describe::ParameterTable;
using tensor::ConstTensorView;
using tensor::DType;
using tensor::Role;
using tensor::TensorView;

enum class Weights : std::uint8_t { Own, Borrowed };

struct Memory {
  TensorView exact_N;    ///< left out where weights are borrowed
  TensorView compute_N;  ///< the same; exact_N on the CPU
  TensorView numbers_C;
  InferenceMemory model;
  TensorView scratch;
  std::optional<MicroBatchStaging> staging;
};

Memory plan(const ParameterTable& table, const batch::Capacity& capacity, std::size_t num_threads,
            Weights weights, tensor::MemoryPlan& plan) {
  Memory memory;
  const tensor::Shape flat{table.num_elements()};
  if (weights == Weights::Own) {
    memory.exact_N = plan.add("parameters", Role::Master, flat);
    memory.compute_N =
        plan.precision().shares_weights() ? memory.exact_N : plan.add("parameters", Role::Weight, flat);
  }
  memory.numbers_C =
      plan.add("scratch", DType::Float64, {static_cast<std::int64_t>(kernels::kNumStepNumbers)});
  memory.model = plan_inference_memory(table.model(), capacity, plan);
  memory.scratch = plan_scratch(table, capacity, num_threads, plan);
  memory.staging.emplace(table.model(), capacity, plan);
  return memory;
}

}  // namespace

EvaluationSums& EvaluationSums::operator+=(const EvaluationSums& other) {
  masked_loss += other.masked_loss;
  masked += other.masked;
  masked_correct += other.masked_correct;
  next_sentence_loss += other.next_sentence_loss;
  sequences += other.sequences;
  next_sentence_correct += other.next_sentence_correct;
  return *this;
}

struct BertInference::State {
  State(const ModelConfig& model, const batch::Capacity& given, std::size_t num_threads,
        std::optional<FlatWeights> borrowed, tensor::Device device)
      : table(describe::describe_bert(model)), owner(device, num_threads) {
    const batch::Capacity capacity = computed_capacity(given, device);
    const Weights whose = borrowed ? Weights::Borrowed : Weights::Own;
    tensor::MemoryPlan sizes(device);
    plan(table, capacity, num_threads, whose, sizes);
    arena.emplace(sizes.layout(), device);
    tensor::MemoryPlan views(*arena);
    memory = plan(table, capacity, num_threads, whose, views);
    layout = views.layout();
    weights = weights_of(table, borrowed.value_or(FlatWeights{memory.exact_N, memory.compute_N}));
    stream.emplace(owner.stream(memory.scratch));
  }

  bool is_on_gpu() const { return stream->device() == tensor::Device::Cuda; }

  Pass pass(const batch::MicroBatch& micro_batch) {
    send_weights();
    return {*stream, table.model(),
            memory.staging->put(micro_batch, is_on_gpu() ? &stream->cuda() : nullptr)};
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

  ParameterTable table;
  tensor::StreamOwner owner;
  std::optional<tensor::Arena> arena;
  Memory memory;
  tensor::MemoryLayout layout;
  BertWeights weights;
  std::optional<tensor::Stream> stream;
  std::vector<float> written_weights;  ///< on the way to the GPU
};

BertInference::BertInference(const ModelConfig& config, const batch::Capacity& capacity,
                             std::size_t num_threads, tensor::Device device)
    : state_(std::make_unique<State>(config, capacity, num_threads, std::nullopt, device)) {
  base::require_kernel_instruction_set();
}

BertInference::BertInference(const ModelConfig& config, const batch::Capacity& capacity,
                             std::size_t num_threads, const FlatWeights& weights, tensor::Device device)
    : state_(std::make_unique<State>(config, capacity, num_threads, weights, device)) {
  base::require_kernel_instruction_set();
}

BertInference::~BertInference() = default;

tensor::MemoryLayout BertInference::plan_memory(const ModelConfig& config, const batch::Capacity& capacity,
                                                std::size_t num_threads, tensor::Device device) {
  tensor::MemoryPlan sizes(device);
  plan(ParameterTable(describe::describe_bert(config)), computed_capacity(capacity, device), num_threads,
       Weights::Borrowed, sizes);
  return sizes.layout();
}

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

EvaluationSums BertInference::evaluate(const batch::MicroBatch& micro_batch) {
  const Pass pass = state_->pass(micro_batch);
  const Activations& kept = state_->memory.model.activations;
  const TensorView& numbers_C = state_->memory.numbers_C;
  tensor::set_zero(*state_->stream, numbers_C);
  bert_forward(pass, state_->weights, kept, state_->memory.model.transients, {}, state_->end());
  add_losses(pass, kept, numbers_C);
  const std::vector<double> numbers = state_->fetched<double>(numbers_C);
  const auto num_labelled =
      static_cast<std::int64_t>(pass.num_labelled() > 0 ? micro_batch.next_sentence_labels.size() : 0);
  EvaluationSums sums{
      .masked_loss = numbers[static_cast<std::size_t>(kernels::StepNumber::MaskedLoss)],
      .masked = static_cast<std::int64_t>(micro_batch.masked_rows.size()),
      .next_sentence_loss = numbers[static_cast<std::size_t>(kernels::StepNumber::NextSentenceLoss)],
      .sequences = num_labelled};
  if (sums.masked > 0) {
    const auto predictions =
        state_->fetched<std::int32_t>(kept.masked_language.prediction_M.first_rows(sums.masked));
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      sums.masked_correct += predictions[i] == micro_batch.masked_labels[i];
    }
  }
  if (num_labelled > 0) {
    const std::vector<float> logits =
        state_->fetched_compute(kept.next_sentence.logits_S2.first_rows(num_labelled));
    for (std::size_t s = 0; s < logits.size() / 2; ++s) {
      const std::int32_t prediction = logits[2 * s + 1] > logits[2 * s] ? 1 : 0;
      sums.next_sentence_correct += prediction == micro_batch.next_sentence_labels[s];
    }
  }
  return sums;
}

std::vector<float> BertInference::masked_logits(const batch::MicroBatch& micro_batch) {
  const Pass pass = state_->pass(micro_batch);
  if (pass.num_masked() == 0) return {};
  const Activations& kept = state_->memory.model.activations;
  bert_encoder_forward(pass, state_->weights, kept, state_->memory.model.transients, {}, state_->end());
  const MaskedLanguageActivations head = kept.masked_language.of(pass.num_masked());
  const MaskedLanguageWeights& weights = state_->weights.masked_language;
  masked_language_transform_forward(pass, weights, masked_rows_of(pass, kept.read_RD), head);
  // Without the stride of logits that go into a loss.
  const std::int64_t V = weights.word_VD.size(0);
  const TensorView logits_MV(head.logits_MW.raw(), head.logits_MW.dtype(), {pass.num_masked(), V});
  kernels::linear_forward(
      *state_->stream,
      {.x_TD = head.y_MD, .w_ED = weights.word_VD, .b_E = weights.decoder_bias_V, .y_TE = logits_MV});
  return state_->fetched_compute(
      logits_MV.first_rows(static_cast<std::int64_t>(micro_batch.masked_rows.size())));
}

}  // namespace plenum::model
