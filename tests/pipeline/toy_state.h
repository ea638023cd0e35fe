#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tests/pipeline/toy_model.h"

namespace plenum::pipeline {

/// No step.
inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

/// Values of the last few steps: what a step leaves stays until as many others as there are places have come.
template <typename Value>
class StepRing {
 public:
  explicit StepRing(std::size_t num_places = 0) : places_(num_places) {}

  /// The value of a step, or null.
  Value* find(std::uint64_t step) {
    Place& place = places_[step % places_.size()];
    return place.step == step ? &place.value : nullptr;
  }
  /// Makes an empty value for a step in place of an older one.
  Value& open(std::uint64_t step) {
    Place& place = places_[step % places_.size()];
    place.step = step;
    place.value = Value{};
    return place.value;
  }

 private:
  struct Place {
    std::uint64_t step = kNever;
    Value value;
  };
  std::vector<Place> places_;
};

/// What a rank knows of a layer for a micro-batch; its activations lie in ToyMemory.
struct LayerRecord {
  std::vector<Values> a;  ///< K-FAC factors of each map; empty until computed
  std::vector<Values> b;
  bool has_input = false;
  bool has_run = false;
  bool is_saved = false;    ///< what the backward needs
  bool has_errors = false;  ///< and so the gradient of its input
  bool has_weight_gradient = false;
};

/// What a rank knows of a stage for a micro-batch in a step.
struct MicroBatchRecord {
  std::vector<ToyToken> tokens;
  std::vector<LayerRecord> layers;
  bool has_output = false;
  bool has_output_gradient = false;
  bool has_sent_activation = false;
  bool has_sent_gradient = false;
};

/// A parameter, where it is held.
struct Block {
  ParameterKind kind = ParameterKind::Weight;
  std::size_t map = 0;
  std::size_t owner = 0;  ///< which holder of the stage shards and preconditions it
  bool is_tied = false;
  bool is_elsewhere = false;  ///< the rank has no shard of it
  Values parameter;
  Values gathered;  ///< what passes read, where ranks keep nothing but shards
  Values momentum;
  double own_squares = 0;     ///< of the momentum, where this rank shards it
  double tensor_squares = 0;  ///< once the ranks have summed theirs
  Values gradient;
  Values flight;  ///< the gradient of one micro-batch, where that is reduced by itself
  Values preconditioned;

  const Values& used() const { return gathered.empty() ? parameter : gathered; }
};

/// What a rank holds of a layer, and the last steps in which things were done to it.
struct LayerState {
  std::vector<Block> blocks;
  std::uint64_t gradient_step = kNever;
  std::size_t num_contributions = 0;  ///< micro-batches in the gradient of that step
  schedule::MicroBatchId flight_of = schedule::MicroBatchId::none();  ///< whose gradient is in flight
  std::uint64_t scattered_step = kNever;
  std::size_t num_scattered = 0;  ///< rounds of that step
  std::uint64_t reduced_step = kNever;
  std::uint64_t preconditioned_step = kNever;
  std::uint64_t gathered_step = kNever;  ///< preconditioned gradients
  std::uint64_t squared_step = kNever;
  std::uint64_t moments_step = kNever;
  std::uint64_t norms_step = kNever;  ///< of whole tensors
  std::uint64_t updated_step = kNever;
  std::uint64_t whole_step = kNever;  ///< parameters: after shards were updated, or as they are in a place
  std::uint64_t accumulated_step = kNever;
};

/// K-FAC factors of a map from all micro-batches, one after another: A, then B.
struct Curvature {
  Values both;
  bool is_reduced = false;
};

/// What gradients are multiplied with from the left and from the right.
struct Inverse {
  Values left;
  Values right;
  std::size_t num_pieces_done = 0;
  bool is_done = false;
};

/// Shampoo's accumulated second moments.
struct Factors {
  Values left;
  Values right;
};

/// What a rank holds of a linear map.
struct MapState {
  StepRing<Curvature> curvature;
  StepRing<Inverse> inverse;
  StepRing<Factors> factors;
  Factors accumulated;
};

}  // namespace plenum::pipeline
