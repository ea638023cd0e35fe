#include "plenum/optim/optimizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/kernels/zero_all.h"
#include "plenum/memory/hidden_matrices.h"
#include "plenum/optim/layer_decay.h"
#include "plenum/tensor/copy.h"

namespace plenum::optim {

using base::LayerId;

Optimizer::Optimizer(const OptimizerOptions& options, const describe::ParameterTable& table,
                     const describe::ParameterShard& shard, OptimizerBuffers buffers,
                     std::vector<memory::DividedLayer> divided)
    : options_(options), buffers_(buffers), divided_(std::move(divided)) {
  options_.kind = options.update_kind();
  for (const describe::ParameterShard::Bucket& bucket : shard.buckets()) add_piece(table, bucket);
  if (!has_layer_update(options_.kind)) return;
  base::check(options_.layer_decay == 1, "Muon and SOAP update matrices of all layers at one rate");
  base::check(shard.is_whole(), "Muon and SOAP multiply whole matrices: a shard has parts of them");
  if (options_.kind == OptimizerKind::Muon) {
    muon_.emplace(table, options.muon_momentum, options.decay, buffers.muon);
  } else {
    soap_.emplace(divided_.empty() ? memory::hidden_matrices(table) : memory::own_matrices(divided_),
                  options.soap, options.epsilon.value_or(default_epsilon(options_.kind)), options.decay,
                  buffers.soap);
  }
}

void Optimizer::add_piece(const describe::ParameterTable& table,
                          const describe::ParameterShard::Bucket& bucket) {
  if (bucket.num_own() == 0) return;
  Piece piece{.layers = bucket.layers, .elements = bucket.own, .shard_begin = bucket.begin};
  piece.counted = describe::counted_by_slice(table, bucket.own);
  for (std::size_t i = 0; i < table.parameters().size(); ++i) {
    const describe::Parameter& parameter = table[i];
    if (has_layer_update(options_.kind) && describe::is_hidden_matrix(parameter)) continue;
    const std::int64_t begin = std::max(parameter.begin, bucket.own.begin);
    const std::int64_t end = std::min(parameter.end(), bucket.own.end);
    if (begin >= end) continue;
    if (piece.ranges.empty()) piece.first_parameter = i;
    piece.ranges.push_back({.begin = begin - bucket.own.begin,
                            .end = end - bucket.own.begin,
                            .is_decayed = parameter.is_decayed,
                            .rate_factor = rate_factor(parameter, table, options_.layer_decay)});
    piece.num_chunks += workspace::num_optimizer_chunks(end - begin);
  }
  if (!pieces_.empty()) piece.first_chunk = pieces_.back().first_chunk + pieces_.back().num_chunks;
  pieces_.push_back(std::move(piece));
}

void Optimizer::begin(const tensor::Stream& stream) {
  if (muon_) muon_->begin(stream);
  if (!buffers_.chunks_C4) return;
  for (const Piece& piece : pieces_) {
    const std::vector<std::int64_t> chunks = kernels::optimizer_chunks(piece.ranges);
    const tensor::TensorView place = buffers_.chunks_C4.rows(piece.first_chunk, piece.num_chunks);
    tensor::copy(stream, tensor::ConstTensorView(chunks.data(), place.shape()), place);
    stream.wait();
  }
}

void Optimizer::add_squares(const tensor::Stream& stream,
                            const describe::ParameterTable::ElementRange& elements,
                            const tensor::TensorView& scalars_C) const {
  kernels::add_gradient_squares(
      stream, {.gradient_N = buffers_.gradients_N.rows(elements.begin, elements.end - elements.begin),
               .scalars_C = scalars_C});
}

void Optimizer::add_squares_of_shard(const tensor::Stream& stream,
                                     const tensor::TensorView& scalars_C) const {
  for (const Piece& piece : pieces_) {
    const tensor::ConstTensorView gradient_N = step_of(piece, scalars_C).gradient_N;
    for (const auto& [begin, end] : piece.counted) {
      kernels::add_gradient_squares(
          stream,
          {.gradient_N = gradient_N.rows(begin - piece.elements.begin, end - begin), .scalars_C = scalars_C});
    }
  }
}

void Optimizer::decide(const tensor::Stream& stream, const tensor::TensorView& scalars_C) const {
  kernels::decide_step(stream, {.clip_norm = options_.clip_norm,
                                .beta1 = options_.beta1,
                                .beta2 = options_.beta2,
                                .is_bias_corrected = options_.kind != OptimizerKind::BertAdam,
                                .scalars_C = scalars_C});
}

kernels::AdamStep Optimizer::step_of(const Piece& piece, const tensor::TensorView& scalars_C) const {
  const std::int64_t count = piece.elements.end - piece.elements.begin;
  const auto of = [&](const tensor::TensorView& view, bool is_of_shard) {
    return view.rows(is_of_shard ? piece.shard_begin : piece.elements.begin, count);
  };
  const bool is_exact = buffers_.compute_weights_N.dtype() == tensor::DType::Float32;
  const tensor::TensorView& chunks_C4 = buffers_.chunks_C4;
  return {.ranges = piece.ranges,
          .work = {.chunks_C4 = chunks_C4 ? chunks_C4.rows(piece.first_chunk, piece.num_chunks) : chunks_C4},
          .gradient_N = of(buffers_.gradients_N, buffers_.are_gradients_of_shard),
          .weight_N = of(buffers_.weights_N, buffers_.are_weights_of_shard),
          .first_moment_N = of(buffers_.first_moments_S, true),
          .second_moment_N = of(buffers_.second_moments_S, true),
          .compute_weight_N =
              is_exact ? tensor::TensorView() : of(buffers_.compute_weights_N, buffers_.are_weights_of_shard),
          .scalars_C = scalars_C,
          .beta1 = options_.beta1,
          .beta2 = options_.beta2,
          .epsilon = options_.epsilon.value_or(default_epsilon(options_.kind)),
          .decay = options_.decay};
}

kernels::LambHalf Optimizer::half_of(const Piece& piece, const tensor::TensorView& scalars_C,
                                     const tensor::TensorView& squares_P2) const {
  return {step_of(piece, scalars_C),
          squares_P2.rows(static_cast<std::int64_t>(piece.first_parameter), std::ssize(piece.ranges))};
}

template <typename Work>
void Optimizer::for_pieces(const describe::LayerRange& layers, const Work& work) const {
  for (const Piece& piece : pieces_) {
    if (layers.first <= piece.layers.first && piece.layers.second <= layers.second) work(piece);
  }
}

void Optimizer::step(const tensor::Stream& stream, const tensor::TensorView& scalars_C,
                     const describe::LayerRange& layers, std::uint64_t step_index) const {
  for_pieces(layers, [&](const Piece& piece) {
    const kernels::AdamStep step = step_of(piece, scalars_C);
    if (options_.kind == OptimizerKind::Lamb) {
      kernels::lamb_step(stream, step);
    } else {
      kernels::adam_step(stream, step);
    }
  });
  if (!divided_.empty()) return update_divided(stream, scalars_C, layers);
  // Matrices of several stages may be one group, and all gradients are there.
  if (layers == pieces_.front().layers) step_matrices(stream, scalars_C, step_index);
}

Soap::Groups Optimizer::own_groups(const describe::LayerRange& layers) const {
  Soap::Groups groups;
  for (std::size_t layer = 0; layer < layers.second.index(); ++layer)
    (layer < layers.first.index() ? groups.first : groups.count) += divided_[layer].own.size();
  return groups;
}

void Optimizer::make_directions(const tensor::Stream& stream, const tensor::TensorView& scalars_C,
                                const describe::LayerRange& layers) const {
  for (LayerId layer = layers.first; layer < layers.second; ++layer.value) {
    const memory::DividedLayer& divided = divided_[layer.index()];
    if (muon_) {
      muon_->make_directions(stream, {.groups = divided.own,
                                      .others = divided.others,
                                      .gradient_N = buffers_.gradients_N,
                                      .moment_N = buffers_.first_moments_S,
                                      .iterate_N = buffers_.second_moments_S,
                                      .room = {},
                                      .scalars_C = scalars_C});
    } else {
      soap_->make_directions(stream, own_groups({layer, LayerId::at(layer.index() + 1)}),
                             {.groups = {},
                              .others = divided.others,
                              .gradient_N = buffers_.gradients_N,
                              .first_moment_N = buffers_.first_moments_S,
                              .second_moment_N = buffers_.second_moments_S,
                              .state = {},
                              .room = {},
                              .scalars_C = scalars_C});
    }
  }
}

void Optimizer::update_divided(const tensor::Stream& stream, const tensor::TensorView& scalars_C,
                               const describe::LayerRange& layers) const {
  const auto update = [&](std::span<const kernels::FlatMatrices> groups) {
    if (muon_) {
      muon_->update_weights(stream, {.groups = groups,
                                     .direction_N = buffers_.gradients_N,
                                     .weight_N = buffers_.weights_N,
                                     .scalars_C = scalars_C});
    } else {
      soap_->update_weights(stream, {.groups = groups,
                                     .direction_N = buffers_.gradients_N,
                                     .weight_N = buffers_.weights_N,
                                     .scalars_C = scalars_C});
    }
  };
  for (std::size_t layer = layers.first.index(); layer < layers.second.index(); ++layer) {
    update(divided_[layer].own);
    update(divided_[layer].others);
  }
}

void Optimizer::step_matrices(const tensor::Stream& stream, const tensor::TensorView& scalars_C,
                              std::uint64_t step_index) const {
  const bool is_exact = buffers_.compute_weights_N.dtype() == tensor::DType::Float32;
  const tensor::TensorView compute_N = is_exact ? tensor::TensorView() : buffers_.compute_weights_N;
  if (muon_) {
    muon_->step(stream, {.gradient_N = buffers_.gradients_N,
                         .weight_N = buffers_.weights_N,
                         .moment_N = buffers_.first_moments_S,
                         .iterate_N = buffers_.second_moments_S,
                         .compute_weight_N = compute_N,
                         .scalars_C = scalars_C});
  }
  if (soap_) {
    soap_->step(stream, step_index,
                {.gradient_N = buffers_.gradients_N,
                 .weight_N = buffers_.weights_N,
                 .first_moment_N = buffers_.first_moments_S,
                 .second_moment_N = buffers_.second_moments_S,
                 .compute_weight_N = compute_N,
                 .scalars_C = scalars_C});
  }
}

void Optimizer::update_moments(const tensor::Stream& stream, const tensor::TensorView& scalars_C,
                               const tensor::TensorView& squares_P2,
                               const describe::LayerRange& layers) const {
  // Parameters of which the shard has nothing count nothing.
  const std::array<tensor::TensorView, 1> as_floats = {
      {{squares_P2.raw(), tensor::DType::Float32, {2 * squares_P2.num_elements()}}}};
  kernels::zero_all(stream, as_floats);
  for_pieces(layers, [&](const Piece& piece) {
    kernels::lamb_moments(stream, half_of(piece, scalars_C, squares_P2));
  });
}

void Optimizer::update_weights(const tensor::Stream& stream, const tensor::TensorView& scalars_C,
                               const tensor::TensorView& squares_P2,
                               const describe::LayerRange& layers) const {
  for_pieces(layers, [&](const Piece& piece) {
    kernels::lamb_weights(stream, half_of(piece, scalars_C, squares_P2));
  });
}

}  // namespace plenum::optim
