#include "plenum/base/check.h"
#include "plenum/schedule/core/action_values.h"
#include "plenum/schedule/core/dataflow.h"

namespace plenum::schedule {

/// Gathers what one action needs before it starts.
class Dataflow::Inputs : ActionValues {
 public:
  using ActionValues::ActionValues;

  void gather() {
    switch (action_.type) {
      case ActionType::Forward:
        return of_forward();
      case ActionType::Backward:
      case ActionType::InputGradient:
        return of_backward();
      case ActionType::WeightGradient:
        of_weight_gradient();
        return add_segments(kInputGradient);
      case ActionType::Recompute:
        // A forward keeps the input of every layer, so any of them can be computed again by itself.
        add_input_of_layers();
        add_gathered_parameters();
        return add_segments(kOutput);
      case ActionType::SendActivation:
        return add_of_micro_batch(kOutput, last_segment_of_stage());
      case ActionType::SendGradient:
        return add_of_micro_batch(kInputGradient, 0);
      case ActionType::ReceiveActivation:
      case ActionType::ReceiveGradient:
      case ActionType::ExchangeData:
      case ActionType::GatherTiedRows:
        return;
      case ActionType::ReduceGradient:
      case ActionType::ReduceScatterGradient:
        return for_each_segment([&](std::uint32_t segment) {
          flow_.add_weight_gradients(rank_, action_.stage, segment, values_);
        });
      case ActionType::ReduceScatterRound:
        return of_round();
      case ActionType::ReduceTied:
        return flow_.add_tied_gradients(rank_, values_);
      case ActionType::ReduceTiedOutput:
      case ActionType::ReduceScatterTiedOutput:
        return flow_.add_tied_output_gradients(rank_, values_);
      case ActionType::GatherTied:
        return of_tied_gather();
      case ActionType::SquareGradient:
        return of_squares();
      case ActionType::Agree:
        return of_agreement();
      case ActionType::UpdateMoments:
        return of_moments();
      case ActionType::ReduceTensorNorms:
        return add_layers(kMoments);
      case ActionType::Update:
        return of_update();
      case ActionType::GatherParameters:
      case ActionType::GatherForward:
      case ActionType::GatherBackward:
        return of_gather();
      default:
        return of_second_order();
    }
  }

 private:
  void of_second_order() {
    switch (action_.type) {
      case ActionType::CurvatureA:
        return add_of_micro_batch(kSaved, first_segment());
      case ActionType::CurvatureB:
        return add_of_micro_batch(kInputGradient, first_segment());
      case ActionType::ReduceCurvature:
        return flow_.add_curvature(rank_, action_, values_);
      case ActionType::Invert:
      case ActionType::InverseRoot:
        return of_inversion();
      case ActionType::InvertLayers:
        return for_each_own_map(
            [&](const Action& map) { Inputs(flow_, rank_, map, values_).of_inversion(); });
      case ActionType::AccumulateFactor:
        return add_gradients_to_precondition();
      case ActionType::Precondition:
        return of_preconditioning();
      case ActionType::GatherPreconditioned:
        return add_layers(kPreconditioned);
      default:
        base::check(false, "nobody says what an action of this type reads: {}", traits_of(action_.type).name);
    }
  }

  void of_forward() {
    add_input_of_layers();
    if (first_segment() == 0 && action_.stage.value == 0 && flow_.has_exchange_) add_of_rank(kExchanged, 1);
    if (flow_.gathers_rounds(action_.stage)) return add_gathered_parameters();
    add_of_last_step(flow_.is_sharded(action_.stage) ? kParameters : kUpdated);
    const bool is_at_an_end = first_segment() == 0 || last_segment() == last_segment_of_stage();
    if (is_at_an_end && flow_.shards_tied(rank_)) add_of_rank(kTiedParameter, 1);
  }

  void of_backward() {
    if (last_segment() == last_segment_of_stage()) {
      add_of_micro_batch(kOutputGradient);
    } else {
      add_of_micro_batch(kInputGradient, last_segment() + 1);
    }
    add_segments(kSaved);
    add_gathered_parameters();
    if (action_.type == ActionType::Backward) of_weight_gradient();
  }

  /// Where it goes.
  void of_weight_gradient() {
    flow_.add_gradient_place(rank_, action_, values_);
    const bool has_rows = action_.first_layer == LayerId{} && flow_.reduces_tied_halves(rank_);
    if (has_rows) add_of_rank(kTiedRows);
  }

  void of_round() {
    const MicroBatchId micro_batch = flow_.micro_batch_of_round(rank_, action_.stage, action_.micro_batch);
    if (micro_batch.is_none()) return;
    for_each_segment([&](std::uint32_t segment) {
      add(flow_.weight_gradient_value(rank_, action_.stage, micro_batch, segment));
    });
  }

  /// Shards are gathered at the end of the step that updated them, or, where nothing else lives through a
  /// step, in the next.
  void of_gather() {
    if (!flow_.gathers_rounds(action_.stage)) return add_layers(kUpdated);
    add_of_last_step(kUpdated);
    if (action_.type != ActionType::GatherParameters) flow_.add_parameter_place(rank_, action_, values_);
  }

  /// Both ends of the model have it.
  void of_tied_gather() {
    const LayerId last = LayerId::at(flow_.layers_.total() - 1);
    add(flow_.layer_value(rank_, {}, {}, kUpdated));
    add(flow_.layer_value(rank_, {}, last, kUpdated));
  }

  void of_inversion() {
    if (action_.piece > 0) {
      add_factor(kFirstPiece + action_.piece - 1u);
    } else if (action_.type == ActionType::InverseRoot) {
      add(flow_.layer_value(rank_, action_.stage, action_.first_layer, kFactor), action_.age);
    } else if (flow_.holders(action_.stage).size() > 1) {
      add_factor(kCurvature);
    } else {
      flow_.add_curvature(rank_, action_, values_);
    }
  }

  void of_preconditioning() {
    add_gradients_to_precondition();
    if (flow_.schedule_.problem.preconditioner == Preconditioner::Muon) return;
    for (LayerId layer = action_.first_layer; layer < action_.end_layer; ++layer.value) {
      for (std::uint16_t factor = 0; factor < flow_.schedule_.problem.num_factors; ++factor) {
        if (flow_.owner(action_.stage, layer, factor) != rank_) continue;
        add(flow_.factor_value(rank_, action_.stage, layer, factor, kInverse), action_.age);
      }
    }
  }

  void of_squares() {
    follows_agreement() ? add_final_gradients() : add_ready_gradients();
    if (action_.stage.value == 0)
      flow_.add_reduced_tied(rank_, values_);  // counted once, where the model begins
  }

  void of_agreement() {
    for (const StageBlock& held : flow_.ranks_[rank_.index()].stages) {
      flow_.add_layers(rank_, held.stage, flow_.layers_.first(held.stage), flow_.layers_.end(held.stage),
                       kSquares, values_);
    }
  }

  void of_update() {
    if (flow_.exchanges_tensor_norms(action_.stage)) add_layers(kTensorNorms);
    of_moments();
  }

  void of_moments() {
    add_ready_gradients();
    add_of_rank(kAgreed);
    const bool is_at_an_end =
        action_.stage.value == 0 || action_.stage.index() + 1 == flow_.schedule_.num_stages();
    if (is_at_an_end) flow_.add_reduced_tied(rank_, values_);
  }

  void add_of_micro_batch(MicroBatchKind kind, std::uint32_t segment = 0) {
    add(flow_.micro_batch_value(rank_, action_.stage, action_.micro_batch, kind, segment), action_.age);
  }
  /// What the action's first layer works on; nothing where the model begins.
  void add_input_of_layers() {
    if (first_segment() > 0) {
      add_of_micro_batch(kOutput, first_segment() - 1);
    } else if (action_.stage.value > 0) {
      add_of_micro_batch(kInput);
    }
  }
  /// Of the action's layers, as the step before left it.
  void add_of_last_step(LayerValueKind kind) {
    for (LayerId layer = action_.first_layer; layer < action_.end_layer; ++layer.value) {
      add(flow_.layer_value(rank_, action_.stage, layer, kind), 1);
    }
  }
  void add_gathered_parameters() {
    if (flow_.gathers_rounds(action_.stage)) flow_.add_parameters(rank_, action_, values_);
  }
  void add_segments(MicroBatchKind kind) {
    for_each_segment([&](std::uint32_t segment) { add_of_micro_batch(kind, segment); });
  }
  void add_final_gradients() {
    flow_.add_final_gradients(rank_, action_.stage, action_.first_layer, action_.end_layer, values_);
  }
  /// What second-order work begins with.
  void add_gradients_to_precondition() {
    add_final_gradients();
    if (follows_agreement()) add_of_rank(kAgreed);
  }
  bool follows_agreement() const {
    return schedule::follows_agreement(flow_.schedule_.problem.preconditioner);
  }
  void add_ready_gradients() {
    flow_.add_ready_gradients(rank_, action_.stage, action_.first_layer, action_.end_layer, values_);
  }

  std::uint32_t last_segment_of_stage() const {
    return static_cast<std::uint32_t>(flow_.num_segments(action_.stage)) - 1;
  }
};

void Dataflow::inputs(Rank rank, const Action& action, std::vector<ValueRef>& values) const {
  values.clear();
  Inputs(*this, rank, action, values).gather();
}

}  // namespace plenum::schedule
