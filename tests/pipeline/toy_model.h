#pragma once

#include <cstdint>
#include <vector>

#include "plenum/schedule/core/schedule.h"

namespace plenum::pipeline {

using Values = std::vector<double>;

/// A network small enough to be computed by hand, with all that makes schedules hard. Each token walks alone:
///   h = embedding[token]
///   h = h + branch * tanh(W h + b)       for every linear map of every layer
///   loss = -log softmax(decoder h)[target], divided by the number of tokens of the global batch
/// Embedding and decoder may be tied. Updates are momentum on the (preconditioned) gradient, clipped to the
/// norm that all ranks agreed on; where the problem has norms of tensors, divided by 1 + |momentum|^2 of
/// each.
struct ToyModel {
  std::size_t width = 3;
  std::size_t vocabulary = 4;
  std::size_t maps_per_layer = 2;
  double branch = 0.25;  ///< small, so that rounding does not grow from step to step
  double learning_rate = 0.05;
  double momentum = 0.5;
  double greatest_norm = 0.6;  ///< small enough to clip in some steps and not in others
  double damping = 0.3;
  double factor_decay = 0.75;  ///< of Shampoo's accumulated factors
};

/// The maps of a layer must be the schedule's factors where it has any.
ToyModel toy_model_for(const schedule::Problem& problem);

/// What a parameter is. A layer has a weight and a bias for each map, in turn; the first layer also has the
/// embedding, the last also the decoder, in this order.
enum class ParameterKind : std::uint8_t { Weight, Bias, Embedding, Decoder };

struct ToyParameter {
  ParameterKind kind = ParameterKind::Weight;
  std::size_t map = 0;  ///< of its layer; 0 for embedding and decoder
  Values initial;
};

/// The parameters of a layer with their initial values.
std::vector<ToyParameter> toy_parameters(const ToyModel& model, const schedule::Problem& problem,
                                         std::size_t layer);

/// Where a token goes and what it should become.
struct ToyToken {
  std::size_t input = 0;
  std::size_t target = 0;
};

/// The tokens of a micro-batch in a step.
std::vector<ToyToken> toy_tokens(const ToyModel& model, const schedule::Problem& problem, std::uint64_t step,
                                 std::size_t micro_batch);

/// Tokens of the global batch.
std::size_t num_toy_tokens(const schedule::Problem& problem);

}  // namespace plenum::pipeline
