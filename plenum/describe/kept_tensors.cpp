#include "plenum/describe/kept_tensors.h"

#include "plenum/tensor/memory_layout.h"

namespace plenum::describe {
namespace {

using tensor::Role;

class KeptList {
 public:
  explicit KeptList(const tensor::Precision& precision) : precision_(precision) {}

  void add(Kept what, Role role, tensor::Shape shape) {
    tensors_.push_back({what, precision_.of(role), shape});
  }
  void add_bytes(Kept what, std::size_t bytes) {
    tensors_.push_back({what, tensor::DType::Byte, {static_cast<std::int64_t>(bytes)}});
  }
  std::vector<KeptTensor> take() && { return std::move(tensors_); }

 private:
  const tensor::Precision& precision_;
  std::vector<KeptTensor> tensors_;
};

/// Which of a norm's input and output a layer keeps.
struct KeptOfNorm {
  bool has_input = true;
  bool has_output = true;
};

/// `first` is the Kept of the norm's input; the others follow it.
void add_norm(const Norm& norm, Kept first, std::int64_t rows, const KeptOfNorm& kept, KeptList& list) {
  const auto at = [&](int offset) { return static_cast<Kept>(static_cast<int>(first) + offset); };
  if (kept.has_input) list.add(first, Role::Activation, {rows, norm.width});
  list.add(at(1), Role::Statistic, {rows});
  list.add(at(2), Role::Statistic, {rows});
  if (kept.has_output) list.add(at(3), Role::Activation, {rows, norm.width});
}

void add_attention(const Attention& attention, const LayerRows& rows, std::size_t dropout_bytes,
                   KeptList& list) {
  const std::int64_t T = rows.attended;
  list.add(Kept::Qkv, Role::Activation, {T, attention.projected_width()});
  list.add(Kept::Context, Role::Activation, {T, attention.width()});
  list.add(Kept::LogSumExp, Role::Statistic, {attention.num_heads, T});
  if (dropout_bytes > 0) list.add_bytes(Kept::DropoutBits, dropout_bytes);
  if (rows.read > 0) list.add(Kept::ReadContext, Role::Activation, {rows.read, attention.width()});
}

void add_mlp(const Mlp& mlp, std::int64_t rows, const Keeping& keeping, KeptList& list) {
  if (keeping.keeps_mlp_inner) list.add(Kept::MlpInner, Role::Activation, {rows, mlp.in.out_width});
  if (keeping.keeps_mlp_output) list.add(Kept::MlpOutput, Role::Activation, {rows, mlp.out.in_width});
}

}  // namespace

std::vector<KeptTensor> kept_tensors(const Layer& layer, const LayerRows& rows, const Keeping& keeping,
                                     const tensor::Precision& precision) {
  KeptList list(precision);
  const bool is_post = layer.norm_position == NormPosition::Post;
  const auto& attention_norm = layer.attention.norm;
  const auto& mlp_norm = layer.mlp.norm;
  if (!is_post && attention_norm) {
    add_norm(*attention_norm, Kept::AttentionNormInput, rows.attended, {.has_input = false}, list);
  }
  add_attention(layer.attention, rows, keeping.dropout_bytes, list);
  if (is_post && attention_norm) {
    add_norm(*attention_norm, Kept::AttentionNormInput, rows.behind, {}, list);
  }
  if (!is_post && mlp_norm) add_norm(*mlp_norm, Kept::MlpNormInput, rows.behind, {}, list);
  add_mlp(layer.mlp, rows.behind, keeping, list);
  // The output of the last norm is the layer's.
  if (is_post && mlp_norm) {
    add_norm(*mlp_norm, Kept::MlpNormInput, rows.behind, {.has_output = false}, list);
  }
  return std::move(list).take();
}

std::vector<KeptTensor> error_tensors(const Layer& layer, const LayerRows& rows,
                                      const tensor::Precision& precision) {
  KeptList list(precision);
  list.add(Kept::QkvError, Role::Activation, {rows.attended, layer.attention.projected_width()});
  list.add(Kept::AttentionOutputError, Role::Activation, {rows.behind, layer.attention.output.out_width});
  list.add(Kept::MlpInnerError, Role::Activation, {rows.behind, layer.mlp.in.out_width});
  list.add(Kept::MlpOutputError, Role::Activation, {rows.behind, layer.mlp.out.out_width});
  return std::move(list).take();
}

std::size_t kept_bytes(const std::vector<KeptTensor>& tensors) {
  tensor::MemoryLayout layout;
  for (const KeptTensor& kept : tensors) layout.add("kept", kept.dtype, kept.shape);
  return layout.num_bytes();
}

}  // namespace plenum::describe
