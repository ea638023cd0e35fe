#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plenum/batch/sequence_offsets.h"
#include "plenum/describe/model_config.h"
#include "plenum/kernels/activation.h"
#include "plenum/kernels/attention.h"
#include "plenum/kernels/attention_work.h"
#include "plenum/kernels/column_sums.h"
#include "plenum/kernels/dropout_rows.h"
#include "plenum/kernels/layer_norm.h"
#include "plenum/kernels/linear.h"
#include "plenum/kernels/mlp_gelu.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/bfloat16.h"
#include "plenum/tensor/copy.h"

namespace plenum::bench {

/// What Plenum does for the speed of a layer, each on top of those before it.
enum class Optimisation : std::uint8_t {
  NoPadding,             ///< rows are real tokens
  OneAttentionLaunch,    ///< not one for each sequence
  GeluInProducts,        ///< with its bias' gradient
  DropoutInNorms,        ///< with the gradient of the bias before it
  OverwrittenGradients,  ///< of weights: not zeroed and added to
  KeptDropout,           ///< of attention, by bits that backward reads; on GPUs
};
inline constexpr std::size_t kNumOptimisations = 6;

/// A form of the layer: the first so many optimisations.
struct LayerForm {
  std::size_t num_optimisations = kNumOptimisations;
  bool has(Optimisation what) const { return static_cast<std::size_t>(what) < num_optimisations; }
};

/// The sequences of a micro-batch, and what the kernels want to know of them.
struct LayerRows {
  std::vector<std::int32_t> starts, lengths, positions;
  std::vector<std::int64_t> samples, row_samples;  ///< of sequences, of rows
  std::int64_t num_rows = 0;

  void add(std::int32_t length, std::int64_t sample) {
    starts.push_back(static_cast<std::int32_t>(num_rows));
    lengths.push_back(length);
    samples.push_back(sample);
    for (std::int32_t position = 0; position < length; ++position) {
      positions.push_back(position);
      row_samples.push_back(sample);
    }
    num_rows += length;
  }
};

/// An encoder layer's forward and backward, put together of the kernels' ops as model/encoder_layer does, or
/// with fewer optimisations. T rows, D width, H heads of width K, F feed-forward width.
class AblationLayer {
 public:
  AblationLayer(const tensor::Stream& stream, const describe::ModelConfig& model, const LayerRows& rows)
      : stream_(stream),
        device_(stream.device()),
        T(rows.num_rows),
        D(model.width),
        H(model.num_heads),
        F(model.mlp_width),
        rows_(rows),
        dropout_threshold_(kernels::dropout_threshold(model.hidden_dropout)),
        identities_{.sample_T = given(rows.row_samples), .position_T = given(rows.positions)},
        all_(attention_part(0, rows.starts.size())) {
    for (std::size_t s = 0; s < rows.starts.size(); ++s) single_.push_back(attention_part(s, 1));
    const kernels::AttentionSize size{.rows = T, .max_length = longest(), .heads = H, .head_width = D / H};
    keep_bits_ = add(tensor::DType::Byte,
                     {static_cast<std::int64_t>(kernels::attention_keep_bytes(device_, size)) + 16});
  }
  AblationLayer(const AblationLayer&) = delete;
  AblationLayer& operator=(const AblationLayer&) = delete;

  void forward(LayerForm form) const {
    kernels::linear_forward(stream_, {.x_TD = x_, .w_ED = w_qkv_, .b_E = b_qkv_, .y_TE = qkv_});
    for (const AttentionPart& part : attention_parts(form)) attention_forward(form, part);
    kernels::linear_forward(stream_, {.x_TD = context_, .w_ED = w_o_, .b_E = b_o_, .y_TE = norm1_.z});
    norm_forward(form, kernels::DropoutSite::AttentionOutput, norm1_, x_);
    if (form.has(Optimisation::GeluInProducts)) {
      kernels::mlp_gelu_forward(stream_,
                                {.x_TD = norm1_.y, .w1_FD = w1_, .b1_F = b1_, .h_TF = h_, .kept_TF = u_});
    } else {
      kernels::linear_forward(stream_, {.x_TD = norm1_.y, .w_ED = w1_, .b_E = b1_, .y_TE = u_});
      kernels::gelu_forward(stream_, {.x = u_, .y = h_});
    }
    kernels::linear_forward(stream_, {.x_TD = h_, .w_ED = w2_, .b_E = b2_, .y_TE = norm2_.z});
    norm_forward(form, kernels::DropoutSite::MlpOutput, norm2_, norm1_.y);
  }

  void backward(LayerForm form) const {
    tensor::copy(stream_, dy_, dx_);
    norm_backward(form, kernels::DropoutSite::MlpOutput, norm2_, db2_);
    const bool has_bias_gradient = form.has(Optimisation::DropoutInNorms);
    map_gradient(form, h_, dbranch_, dw2_, has_bias_gradient ? tensor::TensorView() : db2_);
    if (form.has(Optimisation::GeluInProducts)) {
      kernels::mlp_gelu_backward(
          stream_, {.dy_TD = dbranch_, .w2_DF = w2_, .kept_TF = u_, .du_TF = du_, .db1_F = db1_});
      map_gradient(form, norm1_.y, du_, dw1_, {});
    } else {
      kernels::linear_backward_input(stream_, {.dy_TE = dbranch_, .w_ED = w2_, .dx_TD = du_});
      kernels::gelu_backward(stream_, {.x = u_, .dy = du_, .dx = du_});
      map_gradient(form, norm1_.y, du_, dw1_, db1_);
    }
    kernels::linear_backward_input(
        stream_, {.dy_TE = du_, .w_ED = w1_, .dx_TD = dx_, .accumulate = kernels::Accumulate::Yes});
    norm_backward(form, kernels::DropoutSite::AttentionOutput, norm1_, db_o_);
    map_gradient(form, context_, dbranch_, dw_o_, has_bias_gradient ? tensor::TensorView() : db_o_);
    kernels::linear_backward_input(stream_, {.dy_TE = dbranch_, .w_ED = w_o_, .dx_TD = dcontext_});
    for (const AttentionPart& part : attention_parts(form)) attention_backward(form, part);
    map_gradient(form, x_, dqkv_, dw_qkv_, {});
    kernels::add_column_sums(stream_, {.x_T3D = dqkv_, .sum_3_D = {third(0), {}, third(2)}});
    kernels::linear_backward_input(
        stream_, {.dy_TE = dqkv_, .w_ED = w_qkv_, .dx_TD = dx_, .accumulate = kernels::Accumulate::Yes});
  }

  /// What forward and backward have made, by name. Gradients of vectors are added up from zero on.
  std::vector<std::pair<std::string, std::vector<float>>> results(LayerForm form) const {
    for (const tensor::TensorView& gradient : {db_qkv_, db_o_, db1_, db2_, norm1_.dgamma, norm1_.dbeta,
                                               norm2_.dgamma, norm2_.dbeta, dw_qkv_, dw_o_, dw1_, dw2_})
      tensor::set_zero(stream_, gradient);
    forward(form);
    backward(form);
    return {{"y", values(norm2_.y)},
            {"dx", values(dx_)},
            {"dWqkv", values(dw_qkv_)},
            {"dWo", values(dw_o_)},
            {"dW1", values(dw1_)},
            {"dW2", values(dw2_)},
            {"db1", values(db1_)},
            {"db2", values(db2_)},
            {"dbo", values(db_o_)},
            {"dbqkv", values(db_qkv_)},
            {"dgamma", values(norm1_.dgamma)}};
  }

  /// Scratch that any of the ops needs, on the CPU each thread.
  static std::size_t scratch_bytes(tensor::Device device, const describe::ModelConfig& model,
                                   std::int64_t num_rows, std::int64_t max_length) {
    return std::max({kernels::linear_scratch_bytes(device),
                     kernels::mlp_gelu_scratch_bytes(device, num_rows, model.mlp_width),
                     kernels::layer_norm_scratch_bytes(device, model.width),
                     workspace::dropout_rows_scratch_bytes(device, model.width),
                     kernels::attention_scratch_bytes(device, {.rows = num_rows,
                                                               .max_length = max_length,
                                                               .heads = model.num_heads,
                                                               .head_width = model.head_width()})});
  }

 private:
  /// Sequences whose attention is one launch.
  struct AttentionPart {
    std::int64_t begin = 0;  ///< its first row
    std::vector<std::int32_t> starts, lengths;
    std::vector<std::int64_t> samples;
    std::int64_t num_rows = 0;
    kernels::AttentionWork work = {};
    tensor::TensorView lse;

    batch::SequenceOffsets sequences() const { return {starts, lengths, num_rows}; }
  };
  /// A norm with the dropout and the residual before it.
  struct Norm {
    tensor::TensorView gamma, beta, z, y, mean, inverse_deviation, dgamma, dbeta;
  };

  std::int32_t longest() const { return *std::ranges::max_element(rows_.lengths); }
  std::span<const AttentionPart> attention_parts(LayerForm form) const {
    // Padded sequences are of one length, and one launch for anybody.
    const bool is_one = form.has(Optimisation::OneAttentionLaunch) || !form.has(Optimisation::NoPadding);
    return is_one ? std::span(&all_, 1) : std::span(single_);
  }
  AttentionPart attention_part(std::size_t first, std::size_t count) {
    AttentionPart part{.begin = rows_.starts[first], .starts = {}, .lengths = {}, .samples = {}, .lse = {}};
    for (std::size_t s = first; s < first + count; ++s) {
      part.starts.push_back(rows_.starts[s] - rows_.starts[first]);
      part.lengths.push_back(rows_.lengths[s]);
      part.samples.push_back(rows_.samples[s]);
      part.num_rows += rows_.lengths[s];
    }
    part.lse = add(tensor::DType::Float32, {H, part.num_rows});
    if (device_ == tensor::Device::Cpu) return part;
    kernels::AttentionWorkList list = kernels::attention_work_list(part.sequences());
    const std::vector<std::int32_t> counts = {static_cast<std::int32_t>(list.tiles_N4.size() / 4),
                                              static_cast<std::int32_t>(list.gaps_G2.size() / 2)};
    list.tiles_N4.resize(list.tiles_N4.size() + 4);
    list.gaps_G2.resize(list.gaps_G2.size() + 2);
    const auto by = [](const tensor::TensorView& view, std::int64_t columns) {
      return tensor::TensorView(view.raw(), view.dtype(), {view.num_elements() / columns, columns});
    };
    part.work = {.counts_2 = given(counts),
                 .tiles_N4 = by(given(list.tiles_N4), 4),
                 .gaps_G2 = by(given(list.gaps_G2), 2),
                 .sample_S = given(part.samples)};
    return part;
  }

  kernels::Dropout dropout(kernels::DropoutSite site) const {
    return {.threshold = dropout_threshold_,
            .key = base::RandomFunction(1, base::Purpose::Dropout).key(),
            .site = site};
  }
  tensor::TensorView heads(const tensor::TensorView& view, const AttentionPart& part) const {
    const tensor::TensorView rows = view.rows(part.begin, part.num_rows);
    const bool is_qkv = view.size(1) == 3 * D;
    return {rows.raw(), rows.dtype(),
            is_qkv ? tensor::Shape{part.num_rows, 3, H, D / H} : tensor::Shape{part.num_rows, H, D / H}};
  }
  tensor::TensorView keep_bits(LayerForm form) const {
    return form.has(Optimisation::KeptDropout) ? keep_bits_ : tensor::TensorView();
  }
  void attention_forward(LayerForm form, const AttentionPart& part) const {
    kernels::attention_forward(stream_, {.qkv_T3HK = heads(qkv_, part),
                                         .sequences = part.sequences(),
                                         .samples = part.samples,
                                         .work = part.work,
                                         .dropout = dropout(kernels::DropoutSite::AttentionWeights),
                                         .context_THK = heads(context_, part),
                                         .lse_HT = part.lse,
                                         .keep_bits = keep_bits(form)});
  }
  void attention_backward(LayerForm form, const AttentionPart& part) const {
    kernels::attention_backward(stream_, {.qkv_T3HK = heads(qkv_, part),
                                          .context_THK = heads(context_, part),
                                          .lse_HT = part.lse,
                                          .dcontext_THK = heads(dcontext_, part),
                                          .sequences = part.sequences(),
                                          .samples = part.samples,
                                          .work = part.work,
                                          .dropout = dropout(kernels::DropoutSite::AttentionWeights),
                                          .keep_bits = keep_bits(form),
                                          .dqkv_T3HK = heads(dqkv_, part)});
  }

  void norm_forward(LayerForm form, kernels::DropoutSite site, const Norm& norm,
                    const tensor::TensorView& residual) const {
    const bool is_fused = form.has(Optimisation::DropoutInNorms);
    if (!is_fused)
      kernels::dropout_rows(stream_,
                            {.x_TD = norm.z, .dropout = dropout(site), .rows = identities_, .y_TD = norm.z});
    kernels::layer_norm_forward(stream_, {.x_TD = norm.z,
                                          .residual_TD = residual,
                                          .gamma_D = norm.gamma,
                                          .beta_D = norm.beta,
                                          .dropout = is_fused ? dropout(site) : kernels::Dropout(),
                                          .rows = identities_,
                                          .z_TD = norm.z,
                                          .y_TD = norm.y,
                                          .mean_T = norm.mean,
                                          .inverse_deviation_T = norm.inverse_deviation});
  }
  /// From dx_, the gradient of the norm's output, to that of its residual, and to dbranch_ behind dropout.
  void norm_backward(LayerForm form, kernels::DropoutSite site, const Norm& norm,
                     const tensor::TensorView& db) const {
    const bool is_fused = form.has(Optimisation::DropoutInNorms);
    kernels::layer_norm_backward(stream_, {.dy_TD = dx_,
                                           .z_TD = norm.z,
                                           .mean_T = norm.mean,
                                           .inverse_deviation_T = norm.inverse_deviation,
                                           .gamma_D = norm.gamma,
                                           .dropout = is_fused ? dropout(site) : kernels::Dropout(),
                                           .rows = identities_,
                                           .dz_TD = dx_,
                                           .dx_TD = is_fused ? dbranch_ : tensor::TensorView(),
                                           .dgamma_D = norm.dgamma,
                                           .dbeta_D = norm.dbeta,
                                           .db_D = is_fused ? db : tensor::TensorView()});
    if (!is_fused)
      kernels::dropout_rows(stream_,
                            {.x_TD = dx_, .dropout = dropout(site), .rows = identities_, .y_TD = dbranch_});
  }
  void map_gradient(LayerForm form, const tensor::TensorView& x, const tensor::TensorView& dy,
                    const tensor::TensorView& dw, const tensor::TensorView& db) const {
    const bool overwrites = form.has(Optimisation::OverwrittenGradients);
    if (!overwrites) tensor::set_zero(stream_, dw);
    kernels::linear_backward_weight(
        stream_, {.x_TD = x,
                  .dy_TE = dy,
                  .dw_ED = dw,
                  .db_E = db,
                  .accumulate = overwrites ? kernels::Accumulate::No : kernels::Accumulate::Yes});
  }
  tensor::TensorView third(std::int64_t part) const {
    return {db_qkv_.data<float>() + part * D, tensor::Shape{D}};
  }

  // ---- memory ----

  tensor::TensorView add(tensor::DType dtype, const tensor::Shape& shape) {
    const auto bytes = static_cast<std::size_t>(shape.num_elements()) * tensor::size_of(dtype);
    arenas_.push_back(std::make_unique<tensor::Arena>(bytes, device_));
    return arenas_.back()->view({.offset = 0, .dtype = dtype, .shape = shape});
  }
  template <typename Element>
  tensor::TensorView given(const std::vector<Element>& values) {
    const tensor::TensorView view =
        add(tensor::kDTypeOf<Element>, {static_cast<std::int64_t>(values.size())});
    upload(values, view);
    return view;
  }
  template <typename Element>
  void upload(const std::vector<Element>& values, const tensor::TensorView& view) {
    tensor::copy(stream_, tensor::ConstTensorView(values.data(), view.shape()), view);
    stream_.wait();
  }
  tensor::TensorView of_role(tensor::Role role, const tensor::Shape& shape) {
    return add(stream_.precision().of(role), shape);
  }
  tensor::TensorView rows_of(std::int64_t width) { return of_role(tensor::Role::Activation, {T, width}); }
  tensor::TensorView gradient(const tensor::Shape& shape) { return of_role(tensor::Role::Gradient, shape); }
  /// Numbers around `mean`, at most `spread` from it.
  tensor::TensorView random(tensor::Role role, const tensor::Shape& shape, float spread, float mean = 0) {
    const tensor::TensorView view = of_role(role, shape);
    std::vector<float> values(static_cast<std::size_t>(shape.num_elements()));
    for (float& value : values) {
      state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
      value = mean + spread * (static_cast<float>(state_ >> 40) * 0x1.0p-23F - 1);
    }
    if (view.dtype() == tensor::DType::Float32) {
      upload(values, view);
    } else {
      std::vector<tensor::BFloat16> rounded(values.size());
      std::ranges::transform(values, rounded.begin(), tensor::to_bfloat16);
      upload(rounded, view);
    }
    return view;
  }
  Norm norm() {
    return {.gamma = random(tensor::Role::Master, {D}, 0.1F, 1),
            .beta = random(tensor::Role::Master, {D}, 0.1F),
            .z = rows_of(D),
            .y = rows_of(D),
            .mean = of_role(tensor::Role::Statistic, {T}),
            .inverse_deviation = of_role(tensor::Role::Statistic, {T}),
            .dgamma = gradient({D}),
            .dbeta = gradient({D})};
  }
  std::vector<float> values(const tensor::TensorView& view) const {
    const auto size = static_cast<std::size_t>(view.num_elements());
    std::vector<float> result(size);
    if (view.dtype() == tensor::DType::Float32) {
      tensor::copy(stream_, view, tensor::TensorView(result.data(), view.shape()));
      stream_.wait();
      return result;
    }
    std::vector<tensor::BFloat16> rounded(size);
    tensor::copy(stream_, view, tensor::TensorView(rounded.data(), view.shape()));
    stream_.wait();
    std::ranges::transform(rounded, result.begin(), tensor::to_float);
    return result;
  }

  const tensor::Stream& stream_;
  const tensor::Device device_;
  const std::int64_t T, D, H, F;
  const LayerRows rows_;
  const std::uint32_t dropout_threshold_;
  std::uint64_t state_ = 1;
  std::vector<std::unique_ptr<tensor::Arena>> arenas_;
  const kernels::RowIdentities identities_;
  const AttentionPart all_;
  std::vector<AttentionPart> single_;  ///< one for each sequence
  tensor::TensorView keep_bits_;

  static constexpr float kWeight = 0.05F;
  const tensor::TensorView x_ = random(tensor::Role::Activation, {T, D}, 1);
  const tensor::TensorView dy_ = random(tensor::Role::Activation, {T, D}, 1);
  const tensor::TensorView w_qkv_ = random(tensor::Role::Weight, {3 * D, D}, kWeight);
  const tensor::TensorView b_qkv_ = random(tensor::Role::Weight, {3 * D}, kWeight);
  const tensor::TensorView w_o_ = random(tensor::Role::Weight, {D, D}, kWeight);
  const tensor::TensorView b_o_ = random(tensor::Role::Weight, {D}, kWeight);
  const tensor::TensorView w1_ = random(tensor::Role::Weight, {F, D}, kWeight);
  const tensor::TensorView b1_ = random(tensor::Role::Weight, {F}, kWeight);
  const tensor::TensorView w2_ = random(tensor::Role::Weight, {D, F}, kWeight);
  const tensor::TensorView b2_ = random(tensor::Role::Weight, {D}, kWeight);
  const tensor::TensorView dw_qkv_ = gradient({3 * D, D}), db_qkv_ = gradient({3 * D});
  const tensor::TensorView dw_o_ = gradient({D, D}), db_o_ = gradient({D});
  const tensor::TensorView dw1_ = gradient({F, D}), db1_ = gradient({F});
  const tensor::TensorView dw2_ = gradient({D, F}), db2_ = gradient({D});
  const Norm norm1_ = norm(), norm2_ = norm();
  const tensor::TensorView qkv_ = rows_of(3 * D), dqkv_ = rows_of(3 * D);
  const tensor::TensorView context_ = rows_of(D), dcontext_ = rows_of(D);
  const tensor::TensorView u_ = rows_of(F), h_ = rows_of(F), du_ = rows_of(F);
  const tensor::TensorView dx_ = rows_of(D), dbranch_ = rows_of(D);
};

}  // namespace plenum::bench
