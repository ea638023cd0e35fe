#include "plenum/plan/action_ops.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/memory/micro_batch_layout.h"
#include "plenum/plan/element_bytes.h"
#include "plenum/plan/make_op.h"
#include "plenum/tensor/dtype.h"

namespace plenum::plan {
namespace {

using describe::Attention;
using describe::Layer;

double sum_of_widths(const Attention& attention) {
  return static_cast<double>(attention.projected_width());
}

bool has_bias(const Attention& attention) {
  return std::ranges::any_of(attention.projections,
                             [](const describe::LinearMap& map) { return map.has_bias(); });
}

/// The keys that a token reads in the mean.
double keys_of_token(const Attention& attention, const ComputedWork& work) {
  if (!attention.window || work.mean_length == 0) return work.mean_length;
  const auto length = static_cast<std::int64_t>(std::llround(std::max(work.mean_length, 1.0)));
  return work.mean_length * static_cast<double>(describe::attended_pairs(length, attention.window)) /
         static_cast<double>(length * length);
}

}  // namespace

ComputedWork computed_work(const MicroBatchWork& micro_batch, const describe::ModelDescription& model,
                           tensor::Device device) {
  const batch::Work& work = micro_batch.work;
  ComputedWork computed;
  if (micro_batch.rows == 0) return computed;
  computed.rows = static_cast<double>(memory::computed_rows(micro_batch.rows, device));
  computed.tokens = static_cast<double>(work.tokens);
  if (work.tokens > 0) {
    computed.mean_length = static_cast<double>(work.squared_lengths) / static_cast<double>(work.tokens);
  }
  for (std::size_t i = 0; i < model.heads.size(); ++i) {
    computed.labels[i] = static_cast<double>(memory::computed_labels(work.labels[i], device));
    computed.read += computed.labels[i];
    computed.real_labels += static_cast<double>(work.labels[i]);
  }
  return computed;
}

MicroBatchWork without_padding(const MicroBatchWork& micro_batch) {
  MicroBatchWork real = micro_batch;
  real.rows = std::min(real.rows, real.work.tokens);
  return real;
}

/// The operations of one layer.
class ActionOps::LayerPass {
 public:
  LayerPass(const ActionOps& ops, std::size_t index, const ComputedWork& work, Gradients gradients)
      : ops_(ops),
        layer_(ops.model_.layers[index]),
        work_(work),
        gradients_(gradients),
        is_last_(ops.is_last(index)),
        attended_(work.rows),
        behind_(is_last_ ? work.read : work.rows),
        context_(static_cast<double>(layer_.attention.width())),
        width_(static_cast<double>(ops.model_.width)) {}

  PartWork run(Pass pass) && {
    switch (pass) {
      case Pass::Forward:
      case Pass::RecomputeFull:
        forward();
        break;
      case Pass::RecomputeMlp:
        mlp_forward();
        break;
      case Pass::Backward:
        backward(true);
        break;
      case Pass::InputGradient:
        backward(false);
        break;
      case Pass::WeightGradient:
        mlp_output_gradient();
        weight_gradient(behind_, layer_.mlp.in);
        weight_gradient(behind_, layer_.attention.output);
        projection_gradient();
        break;
    }
    return std::move(part_);
  }

 private:
  void add(const Op& op) { part_.ops.push_back(op); }
  void sum_over_slices(double rows) {
    if (!ops_.model_.tensor_parallel.is_divided()) return;
    part_.summed_bytes.push_back(rows * width_ * ops_.activation_bytes_);
  }

  void product(double rows, const describe::LinearMap& map) {
    add(ops_.op(OpKind::ProductForward, rows, static_cast<double>(map.in_width),
                static_cast<double>(map.out_width)));
  }
  void weight_gradient(double rows, double in, double out) {
    Op op = ops_.op(OpKind::ProductWeightGradient, rows, in, out);
    if (gradients_ == Gradients::AddedTo) op.bytes += kFloatBytes * in * out;
    add(op);
  }
  void weight_gradient(double rows, const describe::LinearMap& map) {
    weight_gradient(rows, static_cast<double>(map.in_width), static_cast<double>(map.out_width));
  }
  /// On top of the gradient of a residual, or alone.
  void input_gradient(double rows, double in, double out, bool is_onto_residual) {
    Op op = ops_.op(OpKind::ProductInputGradient, rows, in, out);
    if (is_onto_residual) op.bytes += ops_.activation_bytes_ * rows * in;
    add(op);
  }
  void norm(OpKind kind, const std::optional<describe::Norm>& norm, double rows) {
    if (!norm) return;
    Op op = ops_.op(kind, rows, static_cast<double>(norm->width));
    // Without dropout the gradients of the sublayer and of the residual are the same.
    if (kind == OpKind::NormBackward && ops_.model_.hidden_dropout == 0) op.bytes *= 0.75;
    add(op);
  }

  void gather_read_rows(double width) {
    for (const double labels : work_.labels) {
      if (labels > 0) add(ops_.op(OpKind::Gather, labels, width));
    }
  }
  void scatter_read_rows(double width) {
    add(ops_.op(OpKind::Fill, attended_, width));
    for (const double labels : work_.labels) {
      if (labels == 0) continue;
      Op op = ops_.op(OpKind::Gather, labels, width);
      op.bytes *= 1.5;  // what is added to is read
      add(op);
    }
  }

  void forward() {
    const Attention& attention = layer_.attention;
    const bool is_pre = layer_.norm_position == describe::NormPosition::Pre;
    if (is_pre) norm(OpKind::NormForward, attention.norm, attended_);
    add(ops_.op(OpKind::ProductForward, attended_, projection_input(), sum_of_widths(attention)));
    add(attention_op(OpKind::AttentionForward));
    if (is_last_) {
      gather_read_rows(context_);
      gather_read_rows(width_);
    }
    product(behind_, attention.output);
    sum_over_slices(behind_);
    norm(OpKind::NormForward, is_pre ? layer_.mlp.norm : attention.norm, behind_);
    mlp_forward();
    product(behind_, layer_.mlp.out);
    sum_over_slices(behind_);
    if (!is_pre) norm(OpKind::NormForward, layer_.mlp.norm, behind_);
  }

  void mlp_forward() {
    const double inner = static_cast<double>(layer_.mlp.in.out_width);
    Op op = ops_.op(OpKind::MlpForward, behind_, static_cast<double>(layer_.mlp.in.in_width), inner);
    // A gate leaves half of what it reads.
    op.bytes -= ops_.activation_bytes_ * behind_ * (inner - mlp_output());
    add(op);
  }

  /// Of the MLP's second map, of whose input the CPU keeps what it is made of.
  void mlp_output_gradient() {
    if (ops_.remakes_mlp_output()) add(ops_.op(OpKind::Activation, behind_, mlp_output()));
    weight_gradient(behind_, layer_.mlp.out);
  }
  void projection_gradient() {
    weight_gradient(attended_, projection_input(), sum_of_widths(layer_.attention));
  }

  void backward(bool has_weights) {
    const bool is_pre = layer_.norm_position == describe::NormPosition::Pre;
    if (!is_pre) norm(OpKind::NormBackward, layer_.mlp.norm, behind_);
    mlp_backward(has_weights);
    norm(OpKind::NormBackward, is_pre ? layer_.mlp.norm : layer_.attention.norm, behind_);
    attention_backward(has_weights);
    if (is_pre) norm(OpKind::NormBackward, layer_.attention.norm, attended_);
  }

  void mlp_backward(bool has_weights) {
    const double inner = static_cast<double>(layer_.mlp.in.out_width);
    if (has_weights) mlp_output_gradient();
    Op op = ops_.op(OpKind::MlpInputGradient, behind_, static_cast<double>(layer_.mlp.out.out_width),
                    mlp_output());
    op.bytes += 2 * ops_.activation_bytes_ * behind_ * (inner - mlp_output());
    add(op);
    if (has_weights) weight_gradient(behind_, layer_.mlp.in);
    input_gradient(behind_, static_cast<double>(layer_.mlp.in.in_width), inner, true);
    sum_over_slices(behind_);
  }

  void attention_backward(bool has_weights) {
    const Attention& attention = layer_.attention;
    if (has_weights) weight_gradient(behind_, attention.output);
    input_gradient(behind_, context_, static_cast<double>(attention.output.out_width), false);
    if (is_last_) {
      scatter_read_rows(context_);
      scatter_read_rows(width_);
    }
    add(attention_op(OpKind::AttentionBackward));
    if (has_weights) projection_gradient();
    // The gradient of the keys' bias is zero.
    if (has_bias(attention)) add(ops_.op(OpKind::ColumnSums, attended_, 2 * context_));
    input_gradient(attended_, projection_input(), sum_of_widths(attention), true);
    sum_over_slices(attended_);
  }

  Op attention_op(OpKind kind) const {
    return ops_.op(kind, work_.tokens, keys_of_token(layer_.attention, work_), context_);
  }
  double projection_input() const {
    return static_cast<double>(layer_.attention.projections.front().in_width);
  }
  double mlp_output() const { return static_cast<double>(layer_.mlp.out.in_width); }

  const ActionOps& ops_;
  const Layer& layer_;
  const ComputedWork& work_;
  Gradients gradients_;
  bool is_last_;
  double attended_;
  double behind_;
  double context_;
  double width_;
  PartWork part_;
};

/// The operations of one head on the rows that it reads.
class ActionOps::HeadPass {
 public:
  HeadPass(const ActionOps& ops, const describe::Head& head, double labels, Gradients gradients,
           PartWork& part)
      : ops_(ops),
        head_(head),
        labels_(labels),
        gradients_(gradients),
        width_(static_cast<double>(head.output.in_width)),
        classes_(static_cast<double>(head.output.out_width)),
        part_(part) {}

  void forward() {
    if (head_.transform) {
      add(OpKind::ProductForward, static_cast<double>(head_.transform->in_width), width_);
      add(OpKind::Activation, width_);
    }
    // Nothing is added to the rows: x is read, y written.
    if (head_.norm) add(OpKind::NormForward, width_, 1, 0.5);
    if (head_.dropout > 0) add(OpKind::Activation, width_);
    if (is_of_words()) {
      add(OpKind::VocabularyLossForward, width_, classes_);
      if (is_divided()) {
        constexpr double kPartBytes = 4 * sizeof(float);
        part_.gathered_bytes.push_back(static_cast<double>(ops_.model_.tensor_parallel.size) * labels_ *
                                       kPartBytes);
      }
    } else {
      add(OpKind::ProductForward, width_, classes_);
      add(OpKind::Activation, classes_);
    }
    add(OpKind::ColumnSums, 1);  // its losses
  }

  void backward() {
    if (is_of_words()) {
      const bool is_apart = head_.output.is_tied && ops_.words_ == WordGradient::Apart;
      if (is_apart && gradients_ == Gradients::Overwritten) {
        part_.ops.push_back(ops_.zeros_of(ops_.model_.embedding.words));
      }
      Op op = ops_.op(OpKind::VocabularyLossBackward, labels_, width_, classes_);
      if (is_apart || gradients_ == Gradients::AddedTo) op.bytes += kFloatBytes * width_ * classes_;
      part_.ops.push_back(op);
      if (is_divided()) part_.summed_bytes.push_back(labels_ * width_ * ops_.activation_bytes_);
    } else {
      add(OpKind::Activation, classes_);
      weight_gradient(width_, classes_);
      add(OpKind::ProductInputGradient, width_, classes_);
    }
    if (head_.dropout > 0) add(OpKind::Activation, width_);
    if (!head_.transform) return;
    if (head_.norm) add(OpKind::NormBackward, width_, 1, 0.75);  // without dropout
    add(OpKind::Activation, width_, 1, 1.5);                     // two arguments
    weight_gradient(static_cast<double>(head_.transform->in_width), width_);
    add(OpKind::ProductInputGradient, static_cast<double>(head_.transform->in_width), width_);
  }

 private:
  void add(OpKind kind, double in, double out = 1, double share_of_bytes = 1) {
    Op op = ops_.op(kind, labels_, in, out);
    op.bytes *= share_of_bytes;
    part_.ops.push_back(op);
  }
  void weight_gradient(double in, double out) {
    Op op = ops_.op(OpKind::ProductWeightGradient, labels_, in, out);
    if (gradients_ == Gradients::AddedTo) op.bytes += kFloatBytes * in * out;
    part_.ops.push_back(op);
  }
  bool is_of_words() const { return head_.objective.loss == describe::LossKind::WordCrossEntropy; }
  bool is_divided() const { return ops_.model_.tensor_parallel.is_divided(); }

  const ActionOps& ops_;
  const describe::Head& head_;
  double labels_;
  Gradients gradients_;
  double width_;
  double classes_;
  PartWork& part_;
};

ActionOps::ActionOps(const describe::ModelDescription& model, tensor::Device device,
                     schedule::Recomputation recomputation, WordGradient words)
    : model_(model),
      device_(device),
      recomputation_(recomputation),
      words_(words),
      activation_bytes_(
          static_cast<double>(tensor::size_of(tensor::precision_of(device).of(tensor::Role::Activation)))) {
  base::check(!model.layers.empty(), "a model without layers has no actions");
}

Op ActionOps::op(OpKind kind, double rows, double in, double out) const {
  return make_op(kind, rows, in, out, activation_bytes_);
}

Op ActionOps::zeros_of(const describe::Table& table) const {
  return make_op(OpKind::Fill, static_cast<double>(table.num_rows), static_cast<double>(table.width), 1,
                 kFloatBytes);
}

bool ActionOps::remakes_mlp_output() const {
  return device_ == tensor::Device::Cpu && recomputation_ == schedule::Recomputation::None;
}

PartWork ActionOps::layer(std::size_t index, Pass pass, const ComputedWork& work, Gradients gradients) const {
  if (work.is_empty()) return {};
  return LayerPass(*this, index, work, gradients).run(pass);
}

PartWork ActionOps::embedding(Pass pass, const ComputedWork& work, Gradients gradients) const {
  PartWork part;
  if (work.is_empty()) return part;
  const auto width = static_cast<double>(model_.width);
  if (pass == Pass::Forward) {
    if (model_.tensor_parallel.is_divided()) {
      part.ops.push_back(op(OpKind::Gather, work.rows, width));
      part.summed_bytes.push_back(work.rows * width * activation_bytes_);
    }
    part.ops.push_back(op(OpKind::EmbeddingForward, work.rows, width));
  } else if (pass == Pass::Backward || pass == Pass::InputGradient) {
    // Gradients of tables are added to; the word table's is where a head shares it and overwrites it.
    for (const describe::Table* const table : model_.embedding.tables()) {
      const bool is_shared = std::ranges::any_of(model_.heads, [&](const describe::Head& head) {
        return head.output.is_tied && head.output.weight == table->weight;
      });
      if (gradients == Gradients::AddedTo || (is_shared && words_ == WordGradient::OfOneStage)) continue;
      part.ops.push_back(zeros_of(*table));
    }
    part.ops.push_back(op(OpKind::EmbeddingBackward, work.rows, width));
  }
  return part;
}

PartWork ActionOps::heads(Pass pass, const ComputedWork& work, Gradients gradients) const {
  PartWork part;
  const bool is_backward = pass == Pass::Backward || pass == Pass::InputGradient;
  if (work.is_empty() || (pass != Pass::Forward && !is_backward)) return part;
  const auto add_norm = [&](OpKind kind) {
    if (model_.final_norm)
      part.ops.push_back(op(kind, work.read, static_cast<double>(model_.final_norm->width)));
  };
  if (!is_backward) add_norm(OpKind::NormForward);
  for (std::size_t i = 0; i < model_.heads.size(); ++i) {
    if (work.labels[i] == 0) continue;
    HeadPass head(*this, model_.heads[i], work.labels[i], gradients, part);
    if (is_backward) {
      head.backward();
    } else {
      head.forward();
    }
  }
  if (is_backward) add_norm(OpKind::NormBackward);
  return part;
}

std::vector<std::size_t> ActionOps::alike_layers() const {
  // Two layers are alike if every pass over some work has the same operations.
  ComputedWork probe{.rows = 640, .read = 96, .tokens = 600, .mean_length = 200, .real_labels = 96};
  probe.labels[0] = 96;
  const auto is_alike = [&](std::size_t one, std::size_t other) {
    if (is_last(one) != is_last(other)) return false;
    for (const Pass pass : {Pass::Forward, Pass::Backward}) {
      const std::vector<Op> ops = layer(one, pass, probe, Gradients::Overwritten).ops;
      if (ops != layer(other, pass, probe, Gradients::Overwritten).ops) return false;
    }
    return model_.layers[one].attention.window == model_.layers[other].attention.window;
  };
  std::vector<std::size_t> firsts;
  std::vector<std::size_t> different;
  for (std::size_t index = 0; index < model_.layers.size(); ++index) {
    const auto found =
        std::ranges::find_if(different, [&](std::size_t other) { return is_alike(other, index); });
    firsts.push_back(found == different.end() ? index : *found);
    if (found == different.end()) different.push_back(index);
  }
  return firsts;
}

}  // namespace plenum::plan
