#include "plenum/memory/activation_layout.h"

#include <algorithm>
#include <functional>

#include "plenum/base/check.h"
#include "plenum/batch/capacity.h"
#include "plenum/workspace/attention.h"
#include "plenum/workspace/optimizer.h"
#include "plenum/workspace/product.h"
#include "plenum/workspace/rows.h"

namespace plenum::memory {
namespace {

using describe::ModelDescription;
using schedule::Recomputation;
using tensor::DType;
using tensor::MemoryPlan;
using tensor::Role;
using tensor::TensorView;

constexpr const char* kActivations = "activations";
constexpr const char* kErrors = "errors";
constexpr const char* kTransients = "transients";
constexpr const char* kHead = "head";

NormActivations plan_norm(std::int64_t T, std::int64_t width, const char* purpose, MemoryPlan& plan) {
  return {.z_TD = plan.add(purpose, Role::Activation, {T, width}),
          .mean_T = plan.add(purpose, Role::Statistic, {T}),
          .inverse_deviation_T = plan.add(purpose, Role::Statistic, {T})};
}

workspace::AttentionSize attention_size(const describe::Attention& attention,
                                        const batch::Capacity& capacity) {
  return {.rows = capacity.rows,
          .max_length = capacity.max_length,
          .heads = attention.num_heads,
          .head_width = attention.head_width};
}

/// What layers keep for backward. Of the MLP the CPU keeps u, of which its GELU is made again; the GPU's
/// memory is too slow to be read again only for that. And a GPU takes longer to draw dropout's bits again
/// than to read them.
describe::Keeping keeping_of(const ModelDescription& model, const describe::Layer& layer,
                             const batch::Capacity& capacity, Recomputation recompute,
                             tensor::Device device) {
  if (recompute != Recomputation::None) return {.keeps_mlp_inner = false};
  const bool has_dropout = model.attention_dropout > 0;
  return {.keeps_mlp_output = device == tensor::Device::Cuda,
          .dropout_bytes =
              has_dropout ? workspace::attention_keep_bytes(device, attention_size(layer.attention, capacity))
                          : 0};
}

/// What a layer has of its MLP from recomputation to backward; left out where no backward follows.
struct MlpActivations {
  TensorView gelu_RF, h_RF;
};

TensorView& place_of(LayerActivations& kept, describe::Kept what) {
  using describe::Kept;
  switch (what) {
    case Kept::AttentionNormInput:
      return kept.norm1.z_TD;
    case Kept::AttentionNormMean:
      return kept.norm1.mean_T;
    case Kept::AttentionNormInverseDeviation:
      return kept.norm1.inverse_deviation_T;
    case Kept::AttentionNormOutput:
      return kept.y1_RD;
    case Kept::Qkv:
      return kept.qkv_T3D;
    case Kept::Context:
      return kept.context_TD;
    case Kept::LogSumExp:
      return kept.lse_HT;
    case Kept::DropoutBits:
      return kept.keep_bits;
    case Kept::ReadContext:
      return kept.read_context_RD;
    case Kept::MlpNormInput:
      return kept.norm2.z_TD;
    case Kept::MlpNormMean:
      return kept.norm2.mean_T;
    case Kept::MlpNormInverseDeviation:
      return kept.norm2.inverse_deviation_T;
    case Kept::MlpInner:
      return kept.gelu_RF;
    case Kept::MlpOutput:
      return kept.h_RF;
    case Kept::MlpNormOutput:
      return kept.mlp_input_RD;
    default:
      break;
  }
  throw base::InternalError("a kept tensor has no place");
}

/// With `recomputed` where the layer keeps nothing of its MLP.
LayerActivations plan_layer(const describe::Layer& layer, const LayerRows& rows,
                            const describe::Keeping& keeping, const MlpActivations& recomputed,
                            const char* purpose, MemoryPlan& plan) {
  LayerActivations kept;
  kept.gelu_RF = recomputed.gelu_RF;
  kept.h_RF = recomputed.h_RF;
  for (const describe::KeptTensor& one : kept_tensors(layer, rows, keeping, plan.precision())) {
    place_of(kept, one.what) = plan.add(purpose, one.dtype, one.shape);
  }
  return kept;
}

TensorView& place_of(LayerErrors& errors, describe::Kept what) {
  using describe::Kept;
  switch (what) {
    case Kept::QkvError:
      return errors.dqkv_T3D;
    case Kept::AttentionOutputError:
      return errors.dattention_RD;
    case Kept::MlpInnerError:
      return errors.du_RF;
    case Kept::MlpOutputError:
      return errors.dmlp_RD;
    default:
      break;
  }
  throw base::InternalError("an error has no place");
}

LayerErrors plan_errors(const describe::Layer& layer, const LayerRows& rows, MemoryPlan& plan) {
  LayerErrors errors;
  for (const describe::KeptTensor& one : error_tensors(layer, rows, plan.precision())) {
    place_of(errors, one.what) = plan.add(kErrors, one.dtype, one.shape);
  }
  return errors;
}

/// The layer of which the most is kept: memory for it does for any other.
const describe::Layer& largest_layer(const ModelDescription& model) {
  const LayerRows one{.attended = 1, .behind = 1};
  const auto size = [&](const describe::Layer& layer) {
    return kept_bytes(kept_tensors(layer, one, {}, tensor::Precision()));
  };
  return *std::ranges::max_element(model.layers, std::less<>(), size);
}

/// For any layer, the last among them: a capacity may name more rows that heads read than rows.
LayerRows most_rows(const batch::Capacity& capacity) {
  return {
      .attended = capacity.rows, .behind = std::max(capacity.rows, capacity.read()), .read = capacity.read()};
}

HeadActivations plan_word_head(const ModelDescription& model, const describe::Head& head, std::int64_t M,
                               MemoryPlan& plan) {
  const std::int64_t D = head.output.in_width;
  const std::int64_t V = head.output.out_width;
  const std::int64_t W = workspace::vocabulary_stride(plan.device(), V);
  HeadActivations kept{
      .u_MD = plan.add(kHead, Role::Activation, {M, D}),
      .norm = plan_norm(M, D, kHead, plan),
      .y_MD = plan.add(kHead, Role::Activation, {M, D}),
      .dropped_MD = {},
      .logits_MW = plan.add(kHead, Role::Activation, {M, W}),
      .loss_M = plan.add(kHead, Role::Statistic, {M}),
      .lse_M = plan.add(kHead, Role::Statistic, {M}),
      .tiles_MN2 = plan.add(kHead, Role::Statistic, {M, workspace::vocabulary_tiles(plan.device(), V), 2}),
      .part_PM4 = {},
      .prediction_M = plan.add(kHead, DType::Int32, {M})};
  if (model.tensor_parallel.is_divided()) {
    const auto num_ranks = static_cast<std::int64_t>(model.tensor_parallel.size);
    kept.part_PM4 = plan.add(kHead, Role::Statistic, {num_ranks, M, 4});
  }
  return kept;
}

/// Whether a forward drops activations.
enum class HasDropout : std::uint8_t { No, Yes };

HeadActivations plan_task_head(const describe::Head& head, std::int64_t M, HasDropout has_dropout,
                               MemoryPlan& plan) {
  const tensor::Shape rows{M, head.output.in_width};
  HeadActivations kept;
  if (head.transform) kept.y_MD = plan.add(kHead, Role::Activation, rows);
  if (head.dropout > 0 && has_dropout == HasDropout::Yes)
    kept.dropped_MD = plan.add(kHead, Role::Activation, rows);
  kept.logits_MW = plan.add(kHead, Role::Activation, {M, head.output.out_width});
  kept.loss_M = plan.add(kHead, Role::Statistic, {M});
  return kept;
}

void plan_heads(const ModelDescription& model, const batch::Capacity& capacity, HasDropout has_dropout,
                Activations& kept, MemoryPlan& plan) {
  for (std::size_t i = 0; i < model.heads.size(); ++i) {
    const describe::Head& head = model.heads[i];
    const std::int64_t M = capacity.labels[i];
    const bool is_of_words = head.objective.loss == describe::LossKind::WordCrossEntropy;
    kept.heads.push_back(is_of_words ? plan_word_head(model, head, M, plan)
                                     : plan_task_head(head, M, has_dropout, plan));
  }
}

/// The widest of what layers have.
struct LayerWidths {
  std::int64_t context = 0;
  std::int64_t projected = 0;
  std::int64_t mlp = 0;  ///< in front of the activation

  explicit LayerWidths(const ModelDescription& model) {
    for (const describe::Layer& layer : model.layers) {
      context = std::max(context, layer.attention.width());
      projected = std::max(projected, layer.attention.projected_width());
      mlp = std::max(mlp, layer.mlp.in.out_width);
    }
  }
};

/// Transients, and the MLP of a layer that is recomputed.
struct SharedMemory {
  Transients transients;
  MlpActivations recomputed_mlp;
};

/// What micro-batches share, on top of what is there. Heads have run backward before a sublayer does, and the
/// MLP's backward ends before attention's begins. So they share memory, but for what passes between them, and
/// but for a recomputed MLP while the heads run: its h gives way to du once it has been read, the rest to
/// attention's gradients.
SharedMemory plan_shared(const ModelDescription& model, const batch::Capacity& capacity,
                         Recomputation recompute, MemoryPlan& plan) {
  const auto [T, R, num_read] = most_rows(capacity);
  const LayerWidths widths(model);
  const std::int64_t D = model.width;
  const tensor::Shape of_mlp{R, widths.mlp};
  SharedMemory shared;
  Transients& transients = shared.transients;
  if (num_read > 0) {
    transients.dread_RD = plan.add(kTransients, Role::Activation, {num_read, D});
    transients.dread_context_RD = plan.add(kTransients, Role::Activation, {num_read, widths.context});
  }
  const std::size_t begin = plan.mark();
  for (std::size_t i = 0; num_read > 0 && i < model.heads.size(); ++i) {
    const describe::Head& head = model.heads[i];
    if (!head.transform) continue;  // the gradient that it would hold is that of what the head reads
    transients.dy_MD[i] =
        plan.add(kTransients, Role::Activation, {capacity.labels[i], head.transform->out_width});
  }
  const std::size_t behind_heads = plan.mark();
  plan.rewind(begin);
  transients.dbranch_RD = plan.add(kTransients, Role::Activation, {R, D});
  const bool recomputes = recompute != Recomputation::None;
  if (recomputes) {
    plan.rewind(std::max(behind_heads, plan.mark()));
    transients.mlp_RF = shared.recomputed_mlp.h_RF = plan.add(kTransients, Role::Activation, of_mlp);
  }
  const std::size_t behind_branch = plan.mark();
  (recomputes ? shared.recomputed_mlp.gelu_RF : transients.mlp_RF) =
      plan.add(kTransients, Role::Activation, of_mlp);
  const std::size_t behind_mlp = plan.mark();
  plan.rewind(behind_branch);
  transients.dcontext_TD = plan.add(kTransients, Role::Activation, {T, widths.context});
  transients.dqkv_T3D = plan.add(kTransients, Role::Activation, {T, widths.projected});
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
          .norm2 = norm2.of(R),
          .mlp_input_RD = rows(mlp_input_RD, R)};
}

LayerErrors LayerErrors::of(const LayerRows& of_rows) const {
  return {.dqkv_T3D = rows(dqkv_T3D, of_rows.attended),
          .dattention_RD = rows(dattention_RD, of_rows.behind),
          .du_RF = rows(du_RF, of_rows.behind),
          .dmlp_RD = rows(dmlp_RD, of_rows.behind)};
}

HeadActivations HeadActivations::of(std::int64_t num_labels) const {
  TensorView part = part_PM4;
  if (part) part = {part.raw(), part.dtype(), {part.size(0), num_labels, part.size(2)}};
  return {.u_MD = rows(u_MD, num_labels),
          .norm = norm.of(num_labels),
          .y_MD = rows(y_MD, num_labels),
          .dropped_MD = rows(dropped_MD, num_labels),
          .logits_MW = rows(logits_MW, num_labels),
          .loss_M = rows(loss_M, num_labels),
          .lse_M = rows(lse_M, num_labels),
          .tiles_MN2 = rows(tiles_MN2, num_labels),
          .part_PM4 = part,
          .prediction_M = rows(prediction_M, num_labels)};
}

Transients Transients::of(const LayerRows& of_rows, const batch::LabelCounts& num_labels) const {
  const auto [T, R, num_read] = of_rows;
  Transients part{.mlp_RF = rows(mlp_RF, R),
                  .dbranch_RD = rows(dbranch_RD, R),
                  .dcontext_TD = rows(dcontext_TD, T),
                  .dqkv_T3D = rows(dqkv_T3D, T),
                  .dread_RD = rows(dread_RD, num_read),
                  .dread_context_RD = rows(dread_context_RD, num_read),
                  .dy_MD = {}};
  for (std::size_t i = 0; i < dy_MD.size(); ++i) part.dy_MD[i] = rows(dy_MD[i], num_labels[i]);
  return part;
}

namespace {

bool holds_last(const ModelDescription& model, const TrainingRequest& request) {
  return std::ranges::any_of(request.stages, [&](const TrainingRequest::Stage& stage) {
    return stage.layers.second.index() == model.layers.size();
  });
}

/// A rank without heads reads nothing of what others label.
batch::Capacity without_labels(batch::Capacity capacity) {
  capacity.labels = {};
  return capacity;
}

/// Lays out the slots of stages.
class SlotPlanner {
 public:
  SlotPlanner(const ModelDescription& model, const batch::Capacity& capacity, const TrainingRequest& request,
              const SharedMemory& shared, MemoryPlan& plan)
      : model_(model), capacity_(capacity), request_(request), shared_(shared), plan_(plan) {
    if (request.recompute != Recomputation::Full) return;
    const describe::Layer& any_layer = largest_layer(model);
    recomputed_layer_ = plan_layer(any_layer, most_rows(capacity), keeping(any_layer), shared.recomputed_mlp,
                                   kTransients, plan);
  }

  Activations plan_slot(const TrainingRequest::Stage& stage) {
    const std::int64_t T = capacity_.rows;
    const auto [first, end] = stage.layers;
    const bool has_heads = end.index() == model_.layers.size();
    Activations slot;
    slot.x_TD.resize(model_.layers.size());
    slot.layers.resize(model_.layers.size());
    slot.errors.resize(model_.layers.size());
    if (first.index() == 0 && model_.embedding.norm) {
      slot.embedding = plan_norm(T, model_.width, kActivations, plan_);
    }
    for (std::size_t layer = first.index(); layer < end.index(); ++layer) plan_layer_of(layer, slot);
    if (stage.sends_output) slot.y_TD = plan_.add(kActivations, Role::Activation, {T, model_.width});
    if (has_heads) {
      slot.read_RD = plan_.add(kActivations, Role::Activation, {capacity_.read(), model_.width});
      if (model_.final_norm) slot.final_norm = plan_norm(capacity_.read(), model_.width, kActivations, plan_);
    }
    slot.dx_TD = plan_.add(kActivations, Role::Activation, {T, model_.width});
    if (has_heads) plan_heads(model_, capacity_, HasDropout::Yes, slot, plan_);
    return slot;
  }

 private:
  describe::Keeping keeping(const describe::Layer& layer) const {
    return keeping_of(model_, layer, capacity_, request_.recompute, plan_.device());
  }

  void plan_layer_of(std::size_t index, Activations& slot) {
    const std::int64_t T = capacity_.rows;
    const describe::Layer& layer = model_.layers[index];
    const bool is_last = index + 1 == model_.layers.size();
    const LayerRows rows =
        is_last ? LayerRows{.attended = T, .behind = capacity_.read(), .read = capacity_.read()}
                : LayerRows{.attended = T, .behind = T};
    slot.x_TD[index] = plan_.add(kActivations, Role::Activation, {T, model_.width});
    slot.layers[index] =
        request_.recompute == Recomputation::Full
            ? recomputed_layer_
            : plan_layer(layer, rows, keeping(layer), shared_.recomputed_mlp, kActivations, plan_);
    if (request_.keeps_errors) slot.errors[index] = plan_errors(layer, rows, plan_);
  }

  const ModelDescription& model_;
  const batch::Capacity& capacity_;
  const TrainingRequest& request_;
  const SharedMemory& shared_;
  MemoryPlan& plan_;
  LayerActivations recomputed_layer_;
};

}  // namespace

TrainingMemory plan_training_memory(const ModelDescription& model, const batch::Capacity& capacity,
                                    const TrainingRequest& request, MemoryPlan& plan) {
  const batch::Capacity computed = holds_last(model, request) ? capacity : without_labels(capacity);
  const SharedMemory shared = plan_shared(model, computed, request.recompute, plan);
  SlotPlanner planner(model, computed, request, shared, plan);
  TrainingMemory memory{.stages = {}, .transients = shared.transients};
  for (const TrainingRequest::Stage& stage : request.stages) {
    std::vector<Activations>& slots = memory.stages.emplace_back();
    for (std::size_t i = 0; i < stage.num_slots; ++i) slots.push_back(planner.plan_slot(stage));
  }
  return memory;
}

InferenceMemory plan_inference_memory(const ModelDescription& model, const batch::Capacity& capacity,
                                      MemoryPlan& plan) {
  const std::int64_t T = capacity.rows;
  InferenceMemory memory;
  Activations& activations = memory.activations;
  // A layer has read its input for the last time before it writes its output: both are the same memory. The
  // sum of the embeddings is not read again once the first layer begins.
  activations.x_TD.assign(model.layers.size(), plan.add(kActivations, Role::Activation, {T, model.width}));
  activations.read_RD = plan.add(kActivations, Role::Activation, {capacity.read(), model.width});
  const std::size_t behind_x = plan.mark();
  activations.embedding = plan_norm(T, model.width, kActivations, plan);
  plan.rewind(behind_x);
  const LayerActivations layer = plan_layer(largest_layer(model), most_rows(capacity),
                                            {.keeps_mlp_inner = false}, {}, kActivations, plan);
  activations.layers.assign(model.layers.size(), layer);
  memory.transients.mlp_RF =
      plan.add(kActivations, Role::Activation, {most_rows(capacity).behind, LayerWidths(model).mlp});
  plan.rewind(behind_x);
  plan_heads(model, capacity, HasDropout::No, activations, plan);
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

TensorView plan_scratch(const describe::ParameterTable& table, const batch::Capacity& capacity,
                        std::size_t num_threads, MemoryPlan& plan) {
  const tensor::Device device = plan.device();
  const ModelDescription& model = table.model();
  const std::int64_t mlp_width = LayerWidths(model).mlp;
  const describe::Attention& attention = model.layers.front().attention;
  if (device == tensor::Device::Cuda) require_mlp_width(mlp_width);
  const std::size_t bytes =
      std::max({workspace::linear_scratch_bytes(device),
                workspace::mlp_gelu_scratch_bytes(device, most_rows(capacity).behind, mlp_width),
                workspace::layer_norm_scratch_bytes(device, model.width),
                workspace::dropout_rows_scratch_bytes(device, model.width),
                workspace::embedding_scratch_bytes(device, capacity.rows, model.width),
                workspace::attention_scratch_bytes(device, attention_size(attention, capacity)),
                workspace::vocabulary_loss_scratch_bytes(device),
                workspace::optimizer_scratch_bytes(device, table.num_elements(),
                                                   static_cast<std::int64_t>(table.parameters().size()))});
  constexpr std::size_t kLine = tensor::MemoryLayout::kAlignment;
  const std::size_t each = (bytes + kLine - 1) / kLine * kLine;
  // Threads of the CPU work side by side, kernels of the GPU one behind the other.
  const std::size_t count = device == tensor::Device::Cpu ? num_threads : 1;
  return plan.add("scratch", DType::Byte, {static_cast<std::int64_t>(each * count)});
}

}  // namespace plenum::memory
