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
#include "plenum/kernels/step_scalars.h"
#include "plenum/memory/forward_memory.h"
#include "plenum/memory/micro_batch_layout.h"
#include "plenum/model/bert.h"
#include "plenum/model/micro_batch_staging.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"
#include "plenum/model/read_rows.h"
#include "plenum/model/word_head.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/memory_plan.h"
#include "plenum/tensor/stream_owner.h"

namespace plenum::model {
namespace {

using base::LayerId;
using describe::ModelConfig;
using describe::ParameterTable;
using memory::ForwardMemory;
using memory::ForwardWeights;
using tensor::ConstTensorView;
using tensor::DType;
using tensor::TensorView;

}  // namespace

EvaluationSums& EvaluationSums::operator+=(const EvaluationSums& other) {
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    objectives[i].loss += other.objectives[i].loss;
    objectives[i].labels += other.objectives[i].labels;
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

  /// The label that each row of an objective's logits predicts.
  std::vector<std::int32_t> predictions(std::size_t objective, std::int64_t count) const {
    const HeadActivations& head = memory.model.activations.heads[objective];
    if (head.prediction_M) return fetched<std::int32_t>(head.prediction_M.first_rows(count));
    const std::vector<float> logits = fetched_compute(head.logits_MW.first_rows(count));
    const auto width = static_cast<std::ptrdiff_t>(head.logits_MW.size(1));
    std::vector<std::int32_t> greatest;
    for (auto row = logits.begin(); row != logits.end(); row += width) {
      greatest.push_back(static_cast<std::int32_t>(std::max_element(row, row + width) - row));
    }
    return greatest;
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

EvaluationSums BertInference::evaluate(const batch::MicroBatch& micro_batch) {
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
    of.labels = static_cast<std::int64_t>(labels.size());
    of.loss = scalars[kernels::index_of(kernels::loss_of(i))];
    const std::vector<std::int32_t> predictions = state_->predictions(i, of.labels);
    for (std::size_t j = 0; j < labels.size(); ++j) of.correct += predictions[j] == labels[j];
  }
  return sums;
}

std::vector<float> BertInference::masked_logits(const batch::MicroBatch& micro_batch) {
  const Pass pass = state_->pass(micro_batch);
  constexpr std::size_t kWords = 0;  // the objective
  if (pass.num_labels(kWords) == 0) return {};
  const Activations& kept = state_->memory.model.activations;
  bert_encoder_forward(pass, state_->weights, kept, state_->memory.model.transients, {}, state_->end());
  const HeadActivations head = kept.heads[kWords].of(pass.num_labels(kWords));
  const HeadWeights& weights = state_->weights.heads[kWords];
  word_head_transform_forward(pass, weights, rows_of_objective(pass, kept.read_RD, kWords), head);
  // Without the stride of logits that go into a loss.
  const std::int64_t V = weights.output_weight.size(0);
  const TensorView logits_MV(head.logits_MW.raw(), head.logits_MW.dtype(), {pass.num_labels(kWords), V});
  kernels::linear_forward(
      *state_->stream,
      {.x_TD = head.y_MD, .w_ED = weights.output_weight, .b_E = weights.output_bias, .y_TE = logits_MV});
  return state_->fetched_compute(
      logits_MV.first_rows(static_cast<std::int64_t>(micro_batch.objective(kWords).rows.size())));
}

}  // namespace plenum::model
