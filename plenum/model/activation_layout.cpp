#include "plenum/model/activation_layout.h"

#include <algorithm>

#include "plenum/batch/capacity.h"
#include "plenum/kernels/attention.h"
#include "plenum/kernels/embedding.h"
#include "plenum/kernels/layer_norm.h"
#include "plenum/kernels/linear.h"
#include "plenum/kernels/mlp_gelu.h"
#include "plenum/kernels/optimizer_step.h"
#include "plenum/kernels/vocabulary_loss.h"

namespace plenum::model {
namespace {

using describe::ModelConfig;
using schedule::Recomputation;
using tensor::DType;
using tensor::MemoryPlan;
using tensor::TensorView;

constexpr const char* kActivations = "activations";
constexpr const char* kTransients = "transients";
constexpr const char* kHead = "head";

NormActivations plan_norm(const ModelConfig& config, std::int64_t T, const char* purpose, MemoryPlan& plan) {
  return {.z_TD = plan.add_compute(purpose, {T, config.width}),
          .mean_T = plan.add(purpose, {T}),
          .inverse_deviation_T = plan.add(purpose, {T})};
}

kernels::AttentionSize attention_size(const ModelConfig& config, const batch::Capacity& capacity) {
  return {.rows = capacity.rows,
          .max_length = capacity.max_length,
          .heads = config.num_heads,
          .head_width = config.head_width()};
}

/// What a layer has of its MLP from forward, or from recomputation, to backward; left out where no backward
/// follows.
struct MlpActivations {
  TensorView gelu_RF, h_RF;
};

/// What forward keeps of a layer's MLP. On the CPU, u, of which its GELU is made again; the GPU's memory is
/// too slow to be read again only for that.
MlpActivations plan_mlp(const ModelConfig& config, std::int64_t R, MemoryPlan& plan) {
  return {.gelu_RF = plan.add_compute(kActivations, {R, config.mlp_width}),
          .h_RF = plan.device() == tensor::Device::Cuda
                      ? plan.add_compute(kActivations, {R, config.mlp_width})
                      : TensorView()};
}

/// Bytes of what dropout keeps of a layer's attention weights. The GPU takes longer to draw it again than to
/// read it.
std::size_t kept_bits_bytes(const ModelConfig& config, const batch::Capacity& capacity,
                            Recomputation recompute, tensor::Device device) {
  if (recompute != Recomputation::None || kernels::dropout_threshold(config.attention_dropout) == 0) return 0;
  return kernels::attention_keep_bytes(device, attention_size(config, capacity));
}

LayerActivations plan_layer(const ModelConfig& config, const LayerRows& rows, const MlpActivations& mlp,
                            std::size_t bits_bytes, const char* purpose, MemoryPlan& plan) {
  const std::int64_t T = rows.attended;
  const std::int64_t R = rows.behind;
  const std::int64_t D = config.width;
  return {.qkv_T3D = plan.add_compute(purpose, {T, 3 * D}),
          .context_TD = plan.add_compute(purpose, {T, D}),
          .lse_HT = plan.add(purpose, {config.num_heads, T}),
          .keep_bits = bits_bytes > 0
                           ? plan.add(purpose, DType::Byte, {static_cast<std::int64_t>(bits_bytes)})
                           : TensorView(),
          .read_context_RD = rows.read > 0 ? plan.add_compute(purpose, {rows.read, D}) : TensorView(),
          .norm1 = plan_norm(config, R, purpose, plan),
          .y1_RD = plan.add_compute(purpose, {R, D}),
          .gelu_RF = mlp.gelu_RF,
          .h_RF = mlp.h_RF,
          .norm2 = plan_norm(config, R, purpose, plan)};
}

/// For any layer, the last among them: a capacity may name more rows that heads read than rows.
LayerRows most_rows(const batch::Capacity& capacity) {
  return {
      .attended = capacity.rows, .behind = std::max(capacity.rows, capacity.read()), .read = capacity.read()};
}

MaskedLanguageActivations plan_masked_language(const ModelConfig& config, std::int64_t M, MemoryPlan& plan) {
  const std::int64_t D = config.width;
  return {
      .u_MD = plan.add_compute(kHead, {M, D}),
      .norm = plan_norm(config, M, kHead, plan),
      .y_MD = plan.add_compute(kHead, {M, D}),
      .logits_MW = plan.add_compute(kHead, {M, kernels::vocabulary_stride(plan.device(), config.vocabulary)}),
      .lse_M = plan.add(kHead, {M}),
      .loss_M = plan.add(kHead, {M}),
      .tiles_MN2 = plan.add(kHead, {M, kernels::vocabulary_tiles(plan.device(), config.vocabulary), 2}),
      .prediction_M = plan.add(kHead, DType::Int32, {M})};
}

NextSentenceActivations plan_next_sentence(const ModelConfig& config, std::int64_t S, MemoryPlan& plan) {
  if (!config.has_next_sentence) return {};
  return {.pooled_SD = plan.add_compute(kHead, {S, config.width}),
          .logits_S2 = plan.add_compute(kHead, {S, 2}),
          .loss_S = plan.add(kHead, {S})};
}

/// Transients, and the MLP of a layer that is recomputed.
struct SharedMemory {
  Transients transients;
  MlpActivations recomputed_mlp;
};

/// What micro-batches share, on top of what is there. Heads have run backward before a sublayer does, and the
/// MLP's backward ends before attention's begins. So they share memory, but for what passes between them, and
/// but for a recomputed MLP while the heads run: its h gives way to du once it has been read, the rest to
/// attention's gradients.
SharedMemory plan_shared(const ModelConfig& config, const batch::Capacity& capacity, Recomputation recompute,
                         MemoryPlan& plan) {
  const auto [T, R, num_read] = most_rows(capacity);
  const std::int64_t D = config.width;
  const tensor::Shape of_mlp{R, config.mlp_width};
  SharedMemory shared;
  Transients& transients = shared.transients;
  transients.dread_RD = plan.add_compute(kTransients, {num_read, D});
  transients.dread_context_RD = plan.add_compute(kTransients, {num_read, D});
  const std::size_t begin = plan.mark();
  transients.dy_MD = plan.add_compute(kTransients, {capacity.masked, D});
  if (config.has_next_sentence)
    transients.dpooled_SD = plan.add_compute(kTransients, {capacity.sequences, D});
  const std::size_t behind_heads = plan.mark();
  plan.rewind(begin);
  transients.dbranch_RD = plan.add_compute(kTransients, {R, D});
  const bool recomputes = recompute != Recomputation::None;
  if (recomputes) {
    plan.rewind(std::max(behind_heads, plan.mark()));
    transients.mlp_RF = shared.recomputed_mlp.h_RF = plan.add_compute(kTransients, of_mlp);
  }
  const std::size_t behind_branch = plan.mark();
  (recomputes ? shared.recomputed_mlp.gelu_RF : transients.mlp_RF) = plan.add_compute(kTransients, of_mlp);
  const std::size_t behind_mlp = plan.mark();
  plan.rewind(behind_branch);
  transients.dcontext_TD = plan.add_compute(kTransients, {T, D});
  transients.dqkv_T3D = plan.add_compute(kTransients, {T, 3 * D});
  plan.rewind(std::max({behind_heads, behind_mlp, plan.mark()}));
  return shared;
}

TensorView rows(const TensorView& view, std::int64_t count) {
  // What was left out stays so.
  return view.shape().num_dims() == 0 ? view : view.first_rows(count);
}

}  // namespace

NormActivations NormActivations::of(std::int64_t num_rows) const {
  return {rows(z_TD, num_rows), rows(mean_T, num_rows), rows(inverse_deviation_T, num_rows)};
}

LayerActivations LayerActivations::of(const LayerRows& of_rows) const {
  const auto [T, R, num_read] = of_rows;
  return {.qkv_T3D = rows(qkv_T3D, T),
          .context_TD = rows(context_TD, T),
          .lse_HT = {lse_HT.raw(), lse_HT.dtype(), {lse_HT.size(0), T}},
          .keep_bits = keep_bits,
          .read_context_RD = rows(read_context_RD, num_read),
          .norm1 = norm1.of(R),
          .y1_RD = rows(y1_RD, R),
          .gelu_RF = rows(gelu_RF, R),
          .h_RF = rows(h_RF, R),
          .norm2 = norm2.of(R)};
}

MaskedLanguageActivations MaskedLanguageActivations::of(std::int64_t num_masked) const {
  return {.u_MD = rows(u_MD, num_masked),
          .norm = norm.of(num_masked),
          .y_MD = rows(y_MD, num_masked),
          .logits_MW = rows(logits_MW, num_masked),
          .lse_M = rows(lse_M, num_masked),
          .loss_M = rows(loss_M, num_masked),
          .tiles_MN2 = rows(tiles_MN2, num_masked),
          .prediction_M = rows(prediction_M, num_masked)};
}

NextSentenceActivations NextSentenceActivations::of(std::int64_t num_sequences) const {
  return {.pooled_SD = rows(pooled_SD, num_sequences),
          .logits_S2 = rows(logits_S2, num_sequences),
          .loss_S = rows(loss_S, num_sequences)};
}

Transients Transients::of(const LayerRows& of_rows, const MicroBatchViews& micro_batch) const {
  const auto [T, R, num_read] = of_rows;
  return {.mlp_RF = rows(mlp_RF, R),
          .dbranch_RD = rows(dbranch_RD, R),
          .dcontext_TD = rows(dcontext_TD, T),
          .dqkv_T3D = rows(dqkv_T3D, T),
          .dread_RD = rows(dread_RD, num_read),
          .dread_context_RD = rows(dread_context_RD, num_read),
          .dy_MD = rows(dy_MD, micro_batch.num_masked()),
          .dpooled_SD = rows(dpooled_SD, micro_batch.num_sequences())};
}

TrainingMemory plan_training_memory(const ModelConfig& config, const batch::Capacity& capacity,
                                    Recomputation recompute, std::size_t num_slots, MemoryPlan& plan) {
  const std::int64_t T = capacity.rows;
  const LayerRows most = most_rows(capacity);
  const LayerRows middle{.attended = T, .behind = T};
  const LayerRows last{.attended = T, .behind = capacity.read(), .read = capacity.read()};
  const SharedMemory shared = plan_shared(config, capacity, recompute, plan);
  TrainingMemory memory{.slots = {}, .transients = shared.transients};
  const std::size_t bits_bytes = kept_bits_bytes(config, capacity, recompute, plan.device());
  LayerActivations recomputed_layer;
  if (recompute == Recomputation::Full)
    recomputed_layer = plan_layer(config, most, shared.recomputed_mlp, 0, kTransients, plan);
  for (std::size_t i = 0; i < num_slots; ++i) {
    Activations& slot = memory.slots.emplace_back();
    slot.embedding = plan_norm(config, T, kActivations, plan);
    for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
      const LayerRows& rows = layer + 1 == config.num_layers ? last : middle;
      slot.x_TD.push_back(plan.add_compute(kActivations, {T, config.width}));
      if (recompute == Recomputation::Full) {
        slot.layers.push_back(recomputed_layer);
        continue;
      }
      const MlpActivations mlp =
          recompute == Recomputation::Mlp ? shared.recomputed_mlp : plan_mlp(config, rows.behind, plan);
      slot.layers.push_back(plan_layer(config, rows, mlp, bits_bytes, kActivations, plan));
    }
    slot.read_RD = plan.add_compute(kActivations, {capacity.read(), config.width});
    slot.dx_TD = plan.add_compute(kActivations, {T, config.width});
    slot.masked_language = plan_masked_language(config, capacity.masked, plan);
    slot.next_sentence = plan_next_sentence(config, capacity.sequences, plan);
  }
  return memory;
}

InferenceMemory plan_inference_memory(const ModelConfig& config, const batch::Capacity& capacity,
                                      MemoryPlan& plan) {
  const std::int64_t T = capacity.rows;
  InferenceMemory memory;
  Activations& activations = memory.activations;
  // A layer has read its input for the last time before it writes its output: both are the same memory. The
  // sum of the embeddings is not read again once the first layer begins.
  activations.x_TD.assign(static_cast<std::size_t>(config.num_layers),
                          plan.add_compute(kActivations, {T, config.width}));
  activations.read_RD = plan.add_compute(kActivations, {capacity.read(), config.width});
  const std::size_t behind_x = plan.mark();
  activations.embedding = plan_norm(config, T, kActivations, plan);
  plan.rewind(behind_x);
  const LayerActivations layer = plan_layer(config, most_rows(capacity), {}, 0, kActivations, plan);
  activations.layers.assign(static_cast<std::size_t>(config.num_layers), layer);
  memory.transients.mlp_RF = plan.add_compute(kActivations, {most_rows(capacity).behind, config.mlp_width});
  plan.rewind(behind_x);
  activations.masked_language = plan_masked_language(config, capacity.masked, plan);
  activations.next_sentence = plan_next_sentence(config, capacity.sequences, plan);
  plan.rewind(plan.layout().num_bytes());
  return memory;
}

namespace {

/// Rows of the GPU's products begin at multiples of 16 bytes: told when memory is planned, not by a product.
void require_mlp_width(std::int64_t mlp_width) {
  base::require(mlp_width % 8 == 0,
                "on the GPU the width of the MLP must be a multiple of 8; choose another or use the CPU: the "
                "width is {}",
                mlp_width);
}

}  // namespace

TensorView plan_scratch(const ModelConfig& config, const describe::ParameterTable& table,
                        const batch::Capacity& capacity, std::size_t num_threads, MemoryPlan& plan) {
  const tensor::Device device = plan.device();
  if (device == tensor::Device::Cuda) require_mlp_width(config.mlp_width);
  const std::size_t bytes =
      std::max({kernels::linear_scratch_bytes(device),
                kernels::mlp_gelu_scratch_bytes(device, most_rows(capacity).behind, config.mlp_width),
                kernels::layer_norm_scratch_bytes(device, config.width),
                kernels::embedding_scratch_bytes(device, capacity.rows, config.width),
                kernels::attention_scratch_bytes(device, attention_size(config, capacity)),
                kernels::vocabulary_loss_scratch_bytes(device),
                kernels::optimizer_scratch_bytes(device, table.num_elements(),
                                                 static_cast<std::int64_t>(table.parameters().size()))});
  constexpr std::size_t kLine = tensor::MemoryLayout::kAlignment;
  const std::size_t each = (bytes + kLine - 1) / kLine * kLine;
  // Threads of the CPU work side by side, kernels of the GPU one behind the other.
  const std::size_t count = device == tensor::Device::Cpu ? num_threads : 1;
  return plan.add("scratch", DType::Byte, {static_cast<std::int64_t>(each * count)});
}

}  // namespace plenum::model
