#include <algorithm>
#include <cmath>
#include <limits>

#include "plenum/base/check.h"

#include "tests/pipeline/toy_matrix.h"
#include "tests/pipeline/toy_program.h"

namespace plenum::pipeline {

using base::check;
using schedule::Action;
using schedule::ActionType;
using schedule::LayerId;
using schedule::Preconditioner;
using schedule::StageId;

namespace {

/// Adds the products of rows of `rows` [tokens, n] with themselves.
Values second_moment(std::span<const double> rows, std::size_t n, double scale) {
  Values sum(n * n, 0.0);
  for (std::size_t t = 0; t < rows.size(); t += n) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) sum[i * n + j] += scale * rows[t + i] * rows[t + j];
    }
  }
  return sum;
}

/// Which piece of an inversion does the left (0) or right (1) factor.
std::size_t piece_of(std::size_t side, std::size_t num_pieces) {
  return side * num_pieces / 2;
}

double squares_of(const Values& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

}  // namespace

void ToyProgram::check_gradient(const HeldStage& stage, const LayerState& layer, std::uint64_t step) const {
  check(layer.gradient_step == step && layer.num_contributions == stage.records.size(),
        "the gradient is incomplete: {} of {} micro-batches", layer.num_contributions, stage.records.size());
  check(stage.num_holders == 1 || layer.reduced_step == step, "the gradient is not reduced");
}

/// That it is what the update uses.
void ToyProgram::check_ready(const HeldStage& stage, const LayerState& layer, std::uint64_t step) const {
  check_gradient(stage, layer, step);
  if (schedule_.problem.preconditioner == Preconditioner::None) return;
  check(layer.preconditioned_step == step, "the gradient is not preconditioned");
  check(stage.num_holders == 1 || layer.gathered_step == step, "the preconditioned gradient is not gathered");
}

void ToyProgram::check_owner(const Action& action) const {
  check(dataflow_.owner(action.stage, action.first_layer, action.factor) == rank_,
        "another rank owns the linear map");
}

void ToyProgram::curvature(const ActionRun& run) {
  const Action& action = run.action;
  MicroBatchRecord& record = record_of(action, run.data_step());
  LayerRecord& layer = layer_of(record, action, action.first_layer.index());
  const bool is_a = action.type == ActionType::CurvatureA;
  check(is_a ? layer.is_saved : layer.has_errors, "what the curvature is made of is not there");
  std::vector<Values>& factors = is_a ? layer.a : layer.b;
  factors.resize(model_.maps_per_layer);
  check(factors[action.factor].empty(), "curvature twice");
  const std::span<const double> rows =
      is_a ? map_input(action, action.first_layer, action.factor, run.data_step())
           : part_of(kept_of(action, action.first_layer, run.data_step()), MapPart::Error, action.factor);
  const double covered = num_covered_tokens(action);
  factors[action.factor] =
      second_moment(rows, model_.width, is_a ? 1 / covered : num_tokens_ * num_tokens_ / covered);
  memory_.end(run);
}

double ToyProgram::num_covered_tokens(const Action& curvature) const {
  double count = 0;
  for (const schedule::MicroBatchId covered :
       coverage_.of(curvature.type, curvature.first_layer, curvature.factor)) {
    count += static_cast<double>(toy_tokens(model_, schedule_.problem, 0, covered.index()).size());
  }
  return count;
}

/// A, then B, over the micro-batches of this rank that they cover, in their order.
Values ToyProgram::sum_curvature(HeldStage& stage, const Action& action, std::uint64_t step) {
  const std::size_t square = model_.width * model_.width;
  Values both(2 * square, 0.0);
  for (auto& [micro_batch, steps] : stage.records) {
    MicroBatchRecord* record = steps.find(step);
    check(record != nullptr, "the curvature of a micro-batch is gone");
    const LayerRecord& layer = layer_of(*record, action, action.first_layer.index());
    for (const ActionType side : {ActionType::CurvatureA, ActionType::CurvatureB}) {
      const auto covered = coverage_.of(side, action.first_layer, action.factor);
      if (!std::binary_search(covered.begin(), covered.end(), micro_batch)) continue;
      const bool is_a = side == ActionType::CurvatureA;
      const std::vector<Values>& moments = is_a ? layer.a : layer.b;
      check(!moments.empty() && !moments[action.factor].empty(), "the curvature of a micro-batch is missing");
      for (std::size_t i = 0; i < square; ++i) both[(is_a ? 0 : square) + i] += moments[action.factor][i];
    }
  }
  return both;
}

/// The inverse of the action's data step, after it was checked that its pieces come in order.
Inverse& ToyProgram::continue_inverse(const ActionRun& run) {
  check_owner(run.action);
  MapState& map = map_of(held(run.action.stage), run.action);
  Inverse* inverse = map.inverse.find(run.data_step());
  check((inverse == nullptr) == (run.action.piece == 0), "inverted twice, or the first piece is missing");
  if (inverse == nullptr) inverse = &map.inverse.open(run.data_step());
  check(inverse->num_pieces_done == run.action.piece, "the pieces must be done in order");
  ++inverse->num_pieces_done;
  inverse->is_done = inverse->num_pieces_done == run.action.num_pieces;
  return *inverse;
}

void ToyProgram::invert(const ActionRun& run) {
  const Action& action = run.action;
  const std::size_t n = model_.width;
  HeldStage& stage = held(action.stage);
  MapState& map = map_of(stage, action);
  Inverse& inverse = continue_inverse(run);
  if (action.piece == 0) {
    if (stage.num_holders == 1) {
      map.curvature.open(run.data_step()) = {sum_curvature(stage, action, run.data_step()), true};
    }
    const Curvature* curvature = map.curvature.find(run.data_step());
    check(curvature != nullptr && curvature->is_reduced, "the curvature is not there");
    const auto middle = curvature->both.begin() + static_cast<std::ptrdiff_t>(n * n);
    inverse.right.assign(curvature->both.begin(), middle);
    inverse.left.assign(middle, curvature->both.end());
    // Both factors decide how the damping is split (Martens and Grosse, 2015), before either is inverted.
    const double pi = std::sqrt(trace_of(inverse.right, n) / trace_of(inverse.left, n));
    add_to_diagonal(inverse.right, std::sqrt(model_.damping) * pi, n);
    add_to_diagonal(inverse.left, std::sqrt(model_.damping) / pi, n);
  }
  if (action.piece == piece_of(0, action.num_pieces)) pipeline::invert(inverse.left, n);
  if (action.piece == piece_of(1, action.num_pieces)) pipeline::invert(inverse.right, n);
}

void ToyProgram::invert_layers(const ActionRun& run) {
  Action of_map = run.action;
  of_map.type = schedule::ActionType::Invert;
  for (schedule::LayerId layer = run.action.first_layer; layer < run.action.end_layer; ++layer.value) {
    of_map.first_layer = layer;
    of_map.end_layer = schedule::LayerId::at(layer.index() + 1);
    for (of_map.factor = 0; of_map.factor < model_.maps_per_layer; ++of_map.factor) {
      if (dataflow_.owner(run.action.stage, layer, of_map.factor) != rank_) continue;
      invert({.action = of_map, .step = run.step, .first_step = run.first_step, .stop = run.stop});
    }
  }
}

void ToyProgram::accumulate_factor(const ActionRun& run) {
  const Action& action = run.action;
  const std::size_t n = model_.width;
  HeldStage& stage = held(action.stage);
  check(agreed_step_ == run.step, "the ranks have not agreed on clipping");
  const double squared_clipping = clipping_ * clipping_;
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
    LayerState& state = layer_of(stage, layer);
    check_gradient(stage, state, run.step);
    check(state.accumulated_step != run.step, "accumulated twice");
    state.accumulated_step = run.step;
    for (const Block& block : state.blocks) {
      if (block.kind != ParameterKind::Weight || block.owner != stage.holder) continue;
      Action of_map = action;
      of_map.first_layer = LayerId::at(layer);
      of_map.factor = static_cast<std::uint16_t>(block.map);
      MapState& map = map_of(stage, of_map);
      const Values& g = block.gradient;
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
          double left = 0;
          double right = 0;
          for (std::size_t k = 0; k < n; ++k) {
            left += g[i * n + k] * g[j * n + k];
            right += g[k * n + i] * g[k * n + j];
          }
          map.accumulated.left[i * n + j] =
              model_.factor_decay * map.accumulated.left[i * n + j] + squared_clipping * left;
          map.accumulated.right[i * n + j] =
              model_.factor_decay * map.accumulated.right[i * n + j] + squared_clipping * right;
        }
      }
      map.factors.open(run.step) = map.accumulated;
    }
  }
}

void ToyProgram::inverse_root(const ActionRun& run) {
  const Action& action = run.action;
  const std::size_t n = model_.width;
  Inverse& inverse = continue_inverse(run);
  const Factors* factors = map_of(held(action.stage), action).factors.find(run.data_step());
  check(factors != nullptr, "the accumulated factor is not there");
  const auto root = [&](const Values& factor) {
    Values damped = factor;
    add_to_diagonal(damped, model_.damping, n);
    return inverse_fourth_root(damped, n);
  };
  if (action.piece == piece_of(0, action.num_pieces)) inverse.left = root(factors->left);
  if (action.piece == piece_of(1, action.num_pieces)) inverse.right = root(factors->right);
}

void ToyProgram::precondition(const ActionRun& run) {
  const Action& action = run.action;
  HeldStage& stage = held(action.stage);
  check(!follows_agreement(schedule_.problem.preconditioner) || agreed_step_ == run.step,
        "the ranks have not agreed");
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
    LayerState& state = layer_of(stage, layer);
    check_gradient(stage, state, run.step);
    check(state.preconditioned_step != run.step, "preconditioned twice");
    state.preconditioned_step = run.step;
    for (Block& block : state.blocks) {
      if (block.kind != ParameterKind::Weight) continue;
      block.preconditioned = block.gradient;
      if (block.owner != stage.holder || !run.has_data_step()) continue;
      Action of_map = action;
      of_map.first_layer = LayerId::at(layer);
      of_map.factor = static_cast<std::uint16_t>(block.map);
      const Inverse* inverse = map_of(stage, of_map).inverse.find(run.data_step());
      check(inverse != nullptr && inverse->is_done, "the inverse of step {} is not there", run.data_step());
      block.preconditioned = product(inverse->left, block.gradient, inverse->right, model_.width);
    }
  }
}

const Values& ToyProgram::ready_gradient(const Block& block) const {
  const bool is_preconditioned =
      block.kind == ParameterKind::Weight && schedule_.problem.preconditioner != Preconditioner::None;
  return is_preconditioned ? block.preconditioned : block.gradient;
}

/// The gradient of the shared table: reduced, or where only this rank has it, the sum of both ends.
Values ToyProgram::tied_gradient(std::uint64_t step) const {
  if (dataflow_.group({.type = ActionType::ReduceTied}).size() > 1) {
    check(tied_step_ == step, "the gradient of the tied parameter is not reduced");
    if (!dataflow_.reduces_tied_halves(rank_)) return tied_gradient_;
    check(tied_output_step_ == step, "a half of the gradient of the tied parameter is not reduced");
    Values sum = tied_output_gradient_;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += tied_gradient_[i];
    return sum;
  }
  Values sum(model_.vocabulary * model_.width, 0.0);
  for (const HeldStage& stage : stages_) {
    for (const LayerState& layer : stage.layers) {
      for (const Block& block : layer.blocks) {
        if (!block.is_tied) continue;
        check(layer.gradient_step == step && layer.num_contributions == stage.records.size(),
              "the gradient of the tied parameter is incomplete");
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += block.gradient[i];
      }
    }
  }
  return sum;
}

void ToyProgram::spoil_gradients(StageId stage) {
  HeldStage& place = held(stage);
  for (LayerState& layer : place.layers) {
    for (Block& block : layer.blocks) {
      if (block.is_tied || block.owner != place.holder) continue;
      block.gradient.back() = std::numeric_limits<double>::quiet_NaN();
      if (!block.preconditioned.empty()) block.preconditioned.back() = block.gradient.back();
    }
  }
}

/// Of what this rank owns; the shared table is counted by the first that holds the model's beginning.
void ToyProgram::square_gradient(const ActionRun& run) {
  const Action& action = run.action;
  HeldStage& stage = held(action.stage);
  if (squares_step_ != run.step) squares_ = 0;
  squares_step_ = run.step;
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
    LayerState& state = layer_of(stage, layer);
    const bool is_of_ready = !follows_agreement(schedule_.problem.preconditioner);
    is_of_ready ? check_ready(stage, state, run.step) : check_gradient(stage, state, run.step);
    check(state.squared_step != run.step, "squares are counted twice");
    state.squared_step = run.step;
    for (const Block& block : state.blocks) {
      if (block.is_tied) {
        const std::size_t counts = is_shared(block) ? 0 : block.owner;
        if (block.kind != ParameterKind::Embedding || stage.holder != counts) continue;
        for (const double g : tied_gradient(run.step)) squares_ += g * g;
      } else if (block.owner == stage.holder) {
        for (const double g : is_of_ready ? ready_gradient(block) : block.gradient) squares_ += g * g;
      }
    }
  }
}

void ToyProgram::fill_agreement(std::uint64_t step) {
  for (const HeldStage& stage : stages_) {
    for (const LayerState& layer : stage.layers) {
      check(layer.squared_step == step, "the squares of a layer are not counted");
    }
  }
  buffer_ = {squares_};
}

void ToyProgram::take_agreement(std::uint64_t step) {
  const double norm = std::sqrt(buffer_[0]);
  clipping_ = norm > model_.greatest_norm ? model_.greatest_norm / norm : 1;
  if (!std::isfinite(norm)) skipped_steps_.push_back(step);
  agreed_step_ = step;
}

bool ToyProgram::is_skipped(std::uint64_t step) const {
  return !skipped_steps_.empty() && skipped_steps_.back() == step;
}

void ToyProgram::update_moments(const ActionRun& run) {
  const Action& action = run.action;
  HeldStage& stage = held(action.stage);
  check(agreed_step_ == run.step, "the ranks have not agreed");
  check(dataflow_.exchanges_tensor_norms(action.stage), "nobody needs the moments by themselves");
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
    LayerState& state = layer_of(stage, layer);
    check(state.moments_step != run.step, "moments twice");
    check_ready(stage, state, run.step);
    state.moments_step = run.step;
    for (Block& block : state.blocks) {
      block.own_squares = 0;
      block.tensor_squares = std::numeric_limits<double>::quiet_NaN();
      if (is_skipped(run.step) || is_shared(block) || block.owner != stage.holder) continue;
      update_momentum(block, block.is_tied ? tied_gradient(run.step) : ready_gradient(block));
      block.own_squares = squares_of(block.momentum);
    }
  }
}

void ToyProgram::update(const ActionRun& run) {
  const Action& action = run.action;
  HeldStage& stage = held(action.stage);
  check(agreed_step_ == run.step, "the ranks have not agreed");
  const bool is_sharded = dataflow_.is_sharded(action.stage);
  const bool has_moments = dataflow_.exchanges_tensor_norms(action.stage);
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
    LayerState& state = layer_of(stage, layer);
    check(state.updated_step != run.step, "update twice");
    check_ready(stage, state, run.step);
    check(!has_moments || state.norms_step == run.step, "the norms of tensors are not summed");
    state.updated_step = run.step;
    if (is_skipped(run.step)) continue;
    for (Block& block : state.blocks) {
      if (is_sharded && !is_shared(block) && block.owner != stage.holder) continue;
      const bool is_begun = has_moments && !is_shared(block);
      if (!is_begun) update_momentum(block, block.is_tied ? tied_gradient(run.step) : ready_gradient(block));
      update_parameter(block, is_begun ? block.tensor_squares : squares_of(block.momentum));
    }
  }
}

void ToyProgram::update_momentum(Block& block, const Values& gradient) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    block.momentum[i] = model_.momentum * block.momentum[i] + clipping_ * gradient[i];
  }
}

void ToyProgram::update_parameter(Block& block, double squares) const {
  const double scale = schedule_.problem.has_tensor_norms ? 1 / (1 + squares) : 1;
  for (std::size_t i = 0; i < block.parameter.size(); ++i) {
    block.parameter[i] -= model_.learning_rate * scale * block.momentum[i];
  }
}

Values ToyProgram::final_gradient(StageId stage, LayerId layer, std::size_t block) const {
  const HeldStage& place = held(stage);
  const LayerState& state = place.layers[layer.index() - dataflow_.layers().first(stage).index()];
  const Block& own = state.blocks[block];
  if (dataflow_.is_sharded(stage) && !is_shared(own) && own.owner != place.holder) return {};
  if (own.is_tied) return tied_gradient(state.gradient_step);
  return ready_gradient(own);
}

const Values* ToyProgram::curvature_of(StageId stage, LayerId layer, std::size_t map, std::uint64_t step) {
  const Action action{.stage = stage, .first_layer = layer, .factor = static_cast<std::uint16_t>(map)};
  const Curvature* curvature = map_of(held(stage), action).curvature.find(step);
  return curvature != nullptr && curvature->is_reduced ? &curvature->both : nullptr;
}

}  // namespace plenum::pipeline
