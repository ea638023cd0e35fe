#include "plenum/model/activation_layout.h"

#include <algorithm>

#include "plenum/kernels/attention.h"
#include "plenum/kernels/layer_norm.h"
#include "plenum/kernels/linear.h"
#include "plenum/kernels/vocabulary_loss.h"

namespace plenum::model {
namespace {

using describe::ModelConfig;
using tensor::DType;
using tensor::MemoryPlan;
using tensor::TensorView;

constexpr const char* kActivations = "activations";
constexpr const char* kTransients = "transients";
constexpr const char* kHead = "head";

NormActivations plan_norm(const ModelConfig& config, std::int64_t T, const char* purpose, MemoryPlan& plan) {
  return {.z_TD = plan.add(purpose, {T, config.width}),
          .mean_T = plan.add(purpose, {T}),
          .inverse_deviation_T = plan.add(purpose, {T})};
}

/// With `u_TF` where it does not belong to the layer alone.
LayerActivations plan_layer(const ModelConfig& config, std::int64_t T, TensorView u_TF, const char* purpose,
                            MemoryPlan& plan) {
  const std::int64_t D = config.width;
  return {.qkv_T3D = plan.add(purpose, {T, 3 * D}),
          .context_TD = plan.add(purpose, {T, D}),
          .lse_HT = plan.add(purpose, {config.num_heads, T}),
          .norm1 = plan_norm(config, T, purpose, plan),
          .y1_TD = plan.add(purpose, {T, D}),
          .u_TF = u_TF.shape().num_dims() > 0 ? u_TF : plan.add(purpose, {T, config.mlp_width}),
          .norm2 = plan_norm(config, T, purpose, plan)};
}

MaskedLanguageActivations plan_masked_language(const ModelConfig& config, std::int64_t M, MemoryPlan& plan) {
  const std::int64_t D = config.width;
  return {.x_MD = plan.add(kHead, {M, D}),
          .u_MD = plan.add(kHead, {M, D}),
          .norm = plan_norm(config, M, kHead, plan),
          .y_MD = plan.add(kHead, {M, D}),
          .logits_MV = plan.add(kHead, {M, config.vocabulary}),
          .lse_M = plan.add(kHead, {M}),
          .loss_M = plan.add(kHead, {M}),
          .tiles_MN2 = plan.add(kHead, {M, kernels::vocabulary_tiles(config.vocabulary), 2}),
          .prediction_M = plan.add(kHead, DType::Int32, {M})};
}

NextSentenceActivations plan_next_sentence(const ModelConfig& config, std::int64_t S, MemoryPlan& plan) {
  if (!config.has_next_sentence) return {};
  return {.x_SD = plan.add(kHead, {S, config.width}),
          .pooled_SD = plan.add(kHead, {S, config.width}),
          .logits_S2 = plan.add(kHead, {S, 2}),
          .loss_S = plan.add(kHead, {S})};
}

/// The transients of backward, on top of what is there. Those of attention, of the MLP and of the heads are
/// not alive at the same time.
Transients plan_transients(const ModelConfig& config, const Capacity& capacity, MemoryPlan& plan) {
  const std::int64_t T = capacity.rows;
  const std::int64_t D = config.width;
  Transients transients;
  const std::size_t begin = plan.mark();
  transients.dbranch_TD = plan.add(kTransients, {T, D});
  const std::size_t behind_branch = plan.mark();
  transients.mlp_TF = plan.add(kTransients, {T, config.mlp_width});
  std::size_t end = plan.mark();
  plan.rewind(behind_branch);
  transients.dcontext_TD = plan.add(kTransients, {T, D});
  transients.dqkv_T3D = plan.add(kTransients, {T, 3 * D});
  end = std::max(end, plan.mark());
  plan.rewind(begin);
  transients.dy_MD = plan.add(kTransients, {capacity.masked, D});
  transients.dx_MD = plan.add(kTransients, {capacity.masked, D});
  if (config.has_next_sentence) {
    transients.dpooled_SD = plan.add(kTransients, {capacity.sequences, D});
    transients.dx_SD = plan.add(kTransients, {capacity.sequences, D});
  }
  plan.rewind(std::max(end, plan.mark()));
  return transients;
}

TensorView rows(const TensorView& view, std::int64_t count) {
  // What was left out stays so.
  return view.shape().num_dims() == 0 ? view : view.first_rows(count);
}

}  // namespace

NormActivations NormActivations::of(std::int64_t num_rows) const {
  return {rows(z_TD, num_rows), rows(mean_T, num_rows), rows(inverse_deviation_T, num_rows)};
}

LayerActivations LayerActivations::of(std::int64_t num_rows) const {
  return {.qkv_T3D = rows(qkv_T3D, num_rows),
          .context_TD = rows(context_TD, num_rows),
          .lse_HT = {lse_HT.raw(), lse_HT.dtype(), {lse_HT.size(0), num_rows}},
          .norm1 = norm1.of(num_rows),
          .y1_TD = rows(y1_TD, num_rows),
          .u_TF = rows(u_TF, num_rows),
          .norm2 = norm2.of(num_rows)};
}

MaskedLanguageActivations MaskedLanguageActivations::of(std::int64_t num_masked) const {
  return {.x_MD = rows(x_MD, num_masked),
          .u_MD = rows(u_MD, num_masked),
          .norm = norm.of(num_masked),
          .y_MD = rows(y_MD, num_masked),
          .logits_MV = rows(logits_MV, num_masked),
          .lse_M = rows(lse_M, num_masked),
          .loss_M = rows(loss_M, num_masked),
          .tiles_MN2 = rows(tiles_MN2, num_masked),
          .prediction_M = rows(prediction_M, num_masked)};
}

NextSentenceActivations NextSentenceActivations::of(std::int64_t num_sequences) const {
  return {.x_SD = rows(x_SD, num_sequences),
          .pooled_SD = rows(pooled_SD, num_sequences),
          .logits_S2 = rows(logits_S2, num_sequences),
          .loss_S = rows(loss_S, num_sequences)};
}

Transients Transients::of(const MicroBatch& micro_batch) const {
  const std::int64_t num_rows = micro_batch.num_rows;
  const auto num_masked = static_cast<std::int64_t>(micro_batch.masked_rows.size());
  const auto num_sequences = static_cast<std::int64_t>(micro_batch.starts.size());
  return {.mlp_TF = rows(mlp_TF, num_rows),
          .dbranch_TD = rows(dbranch_TD, num_rows),
          .dcontext_TD = rows(dcontext_TD, num_rows),
          .dqkv_T3D = rows(dqkv_T3D, num_rows),
          .dy_MD = rows(dy_MD, num_masked),
          .dx_MD = rows(dx_MD, num_masked),
          .dpooled_SD = rows(dpooled_SD, num_sequences),
          .dx_SD = rows(dx_SD, num_sequences)};
}

TrainingMemory plan_training_memory(const ModelConfig& config, const Capacity& capacity, Recompute recompute,
                                    std::size_t num_slots, MemoryPlan& plan) {
  const std::int64_t T = capacity.rows;
  TrainingMemory memory{.slots = {}, .transients = plan_transients(config, capacity, plan)};
  TensorView recomputed_u_TF;
  LayerActivations recomputed_layer;
  if (recompute == Recompute::Mlp) recomputed_u_TF = plan.add(kTransients, {T, config.mlp_width});
  if (recompute == Recompute::Full) recomputed_layer = plan_layer(config, T, {}, kTransients, plan);
  for (std::size_t i = 0; i < num_slots; ++i) {
    Activations& slot = memory.slots.emplace_back();
    slot.recompute = recompute;
    slot.embedding = plan_norm(config, T, kActivations, plan);
    for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
      slot.x_TD.push_back(plan.add(kActivations, {T, config.width}));
      slot.layers.push_back(recompute == Recompute::Full
                                ? recomputed_layer
                                : plan_layer(config, T, recomputed_u_TF, kActivations, plan));
    }
    slot.x_TD.push_back(plan.add(kActivations, {T, config.width}));
    slot.dx_TD = plan.add(kActivations, {T, config.width});
    slot.masked_language = plan_masked_language(config, capacity.masked, plan);
    slot.next_sentence = plan_next_sentence(config, capacity.sequences, plan);
  }
  return memory;
}

InferenceMemory plan_inference_memory(const ModelConfig& config, const Capacity& capacity, MemoryPlan& plan) {
  const std::int64_t T = capacity.rows;
  InferenceMemory memory;
  Activations& activations = memory.activations;
  // A layer has read its input for the last time before it writes its output: both are the same memory. The
  // sum of the embeddings is not read again once the first layer begins.
  activations.x_TD.assign(static_cast<std::size_t>(config.num_layers) + 1,
                          plan.add(kActivations, {T, config.width}));
  const std::size_t behind_x = plan.mark();
  activations.embedding = plan_norm(config, T, kActivations, plan);
  plan.rewind(behind_x);
  const LayerActivations layer = plan_layer(config, T, {}, kActivations, plan);
  activations.layers.assign(static_cast<std::size_t>(config.num_layers), layer);
  memory.transients.mlp_TF = layer.u_TF;
  plan.rewind(behind_x);
  activations.masked_language = plan_masked_language(config, capacity.masked, plan);
  activations.next_sentence = plan_next_sentence(config, capacity.sequences, plan);
  plan.rewind(plan.layout().num_bytes());
  return memory;
}

TensorView plan_scratch(const ModelConfig& config, const Capacity& capacity, std::size_t num_threads,
                        MemoryPlan& plan) {
  const std::size_t bytes =
      std::max({kernels::linear_scratch_bytes(), kernels::layer_norm_scratch_bytes(config.width),
                kernels::attention_scratch_bytes(capacity.max_length, config.head_width()),
                kernels::vocabulary_loss_scratch_bytes()});
  constexpr std::size_t kLine = tensor::MemoryLayout::kAlignment;
  const std::size_t per_thread = (bytes + kLine - 1) / kLine * kLine;
  return plan.add("scratch", DType::Byte, {static_cast<std::int64_t>(per_thread * num_threads)});
}

}  // namespace plenum::model
