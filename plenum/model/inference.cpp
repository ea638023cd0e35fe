#include "plenum/model/inference.h"

#include <optional>

#include "plenum/base/check.h"
#include "plenum/base/instruction_set.h"
#include "plenum/base/thread_pool.h"
#include "plenum/kernels/linear.h"
#include "plenum/model/activation_layout.h"
#include "plenum/model/bert.h"
#include "plenum/model/masked_language_head.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"
#include "plenum/tensor/memory_plan.h"
#include "plenum/tensor/stream.h"

namespace plenum::model {
namespace {

using base::LayerId;
using describe::ModelConfig;
using describe::ParameterTable;
using tensor::ConstTensorView;
using tensor::TensorView;

enum class Weights : std::uint8_t { Own, Borrowed };

struct Memory {
  TensorView weights_N;  ///< left out where they are borrowed
  InferenceMemory model;
  TensorView scratch;
};

Memory plan(const ModelConfig& config, const ParameterTable& table, const Capacity& capacity,
            std::size_t num_threads, Weights weights, tensor::MemoryPlan& plan) {
  Memory memory;
  if (weights == Weights::Own) memory.weights_N = plan.add("parameters", {table.num_elements()});
  memory.model = plan_inference_memory(config, capacity, plan);
  memory.scratch = plan_scratch(config, capacity, num_threads, plan);
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
  State(const ModelConfig& model, const Capacity& capacity, std::size_t num_threads,
        std::optional<ConstTensorView> borrowed_N)
      : config(model), table(config), pool(num_threads) {
    const Weights whose = borrowed_N ? Weights::Borrowed : Weights::Own;
    tensor::MemoryPlan sizes;
    plan(config, table, capacity, num_threads, whose, sizes);
    arena.emplace(sizes.layout());
    tensor::MemoryPlan views(*arena);
    memory = plan(config, table, capacity, num_threads, whose, views);
    layout = views.layout();
    weights = weights_of(config, table, borrowed_N.value_or(memory.weights_N));
    stream.emplace(pool, memory.scratch.span<std::byte>());
  }

  Pass pass(const MicroBatch& micro_batch) const { return {*stream, config, micro_batch}; }
  LayerId end() const { return LayerId::at(weights.layers.size()); }

  ModelConfig config;
  ParameterTable table;
  base::ThreadPool pool;
  std::optional<tensor::Arena> arena;
  Memory memory;
  tensor::MemoryLayout layout;
  BertWeights weights;
  std::optional<tensor::Stream> stream;
};

BertInference::BertInference(const ModelConfig& config, const Capacity& capacity, std::size_t num_threads)
    : state_(std::make_unique<State>(config, capacity, num_threads, std::nullopt)) {
  base::require_kernel_instruction_set();
}

BertInference::BertInference(const ModelConfig& config, const Capacity& capacity, std::size_t num_threads,
                             ConstTensorView weights_N)
    : state_(std::make_unique<State>(config, capacity, num_threads, weights_N)) {
  base::require_kernel_instruction_set();
}

BertInference::~BertInference() = default;

tensor::MemoryLayout BertInference::plan_memory(const ModelConfig& config, const Capacity& capacity,
                                                std::size_t num_threads) {
  tensor::MemoryPlan sizes;
  plan(config, ParameterTable(config), capacity, num_threads, Weights::Borrowed, sizes);
  return sizes.layout();
}

const ParameterTable& BertInference::parameters() const {
  return state_->table;
}

TensorView BertInference::weights() const {
  base::check(static_cast<bool>(state_->memory.weights_N), "the weights are borrowed");
  return state_->memory.weights_N;
}

const tensor::MemoryLayout& BertInference::memory() const {
  return state_->layout;
}

EvaluationSums BertInference::evaluate(const MicroBatch& micro_batch) {
  const Pass pass = state_->pass(micro_batch);
  const Activations& kept = state_->memory.model.activations;
  bert_forward(pass, state_->weights, kept, state_->memory.model.transients, {}, state_->end());
  const LossSums losses = loss_sums(pass, kept);
  EvaluationSums sums{.masked_loss = losses.masked,
                      .masked = pass.num_masked(),
                      .next_sentence_loss = losses.next_sentence,
                      .sequences = pass.num_labelled()};
  const auto* predictions = kept.masked_language.prediction_M.data<std::int32_t>();
  for (std::size_t i = 0; i < micro_batch.masked_labels.size(); ++i) {
    sums.masked_correct += predictions[i] == micro_batch.masked_labels[i];
  }
  for (std::int64_t s = 0; s < pass.num_labelled(); ++s) {
    const float* logits = kept.next_sentence.logits_S2.data<float>() + 2 * s;
    const std::int32_t prediction = logits[1] > logits[0] ? 1 : 0;
    sums.next_sentence_correct += prediction == micro_batch.next_sentence_labels[static_cast<std::size_t>(s)];
  }
  return sums;
}

std::span<const float> BertInference::masked_logits(const MicroBatch& micro_batch) {
  const Pass pass = state_->pass(micro_batch);
  if (pass.num_masked() == 0) return {};
  const Activations& kept = state_->memory.model.activations;
  bert_encoder_forward(pass, state_->weights, kept, state_->memory.model.transients, {}, state_->end());
  const MaskedLanguageActivations head = kept.masked_language.of(pass.num_masked());
  const MaskedLanguageWeights& weights = state_->weights.masked_language;
  masked_language_transform_forward(pass, weights, kept.x_TD.back().first_rows(pass.num_rows()), head);
  kernels::linear_forward(
      *state_->stream,
      {.x_TD = head.y_MD, .w_ED = weights.word_VD, .b_E = weights.decoder_bias_V, .y_TE = head.logits_MV});
  return head.logits_MV.span<float>();
}

}  // namespace plenum::model
