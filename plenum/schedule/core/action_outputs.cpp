#include "plenum/base/check.h"
#include "plenum/schedule/core/action_values.h"
#include "plenum/schedule/core/dataflow.h"

namespace plenum::schedule {

/// Gathers what exists once one action is done.
class Dataflow::Outputs : ActionValues {
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
        return for_each_segment([&](std::uint32_t segment) { add_weight_gradient(segment); });
      case ActionType::Recompute:
        return for_each_segment([&](std::uint32_t segment) { add_of_micro_batch(kSaved, segment); });
      case ActionType::SendActivation:
        return add_of_micro_batch(kSentActivation);
      case ActionType::SendGradient:
        return add_of_micro_batch(kSentGradient);
      case ActionType::ReceiveActivation:
        return add_of_micro_batch(kInput);
      case ActionType::ReceiveGradient:
        return add_of_micro_batch(kOutputGradient);
      case ActionType::ReduceGradient:
      case ActionType::ReduceScatterGradient:
        return add_layers(kReduced);
      case ActionType::ReduceScatterRound:
        return of_round();
      case ActionType::GatherParameters:
        return add_layers(kParameters);
      case ActionType::GatherForward:
      case ActionType::GatherBackward:
        return of_gather();
      case ActionType::ReduceTied:
        return add_of_rank(kTied);
      case ActionType::GatherTiedRows:
        return add_of_rank(kTiedRows);
      case ActionType::ReduceTiedOutput:
      case ActionType::ReduceScatterTiedOutput:
        return add_of_rank(kTiedOutput);
      case ActionType::GatherTied:
        return add_of_rank(kTiedParameter);
      case ActionType::SquareGradient:
        return add_layers(kSquares);
      case ActionType::Agree:
        return add_of_rank(kAgreed);
      case ActionType::UpdateMoments:
        return add_layers(kMoments);
      case ActionType::ReduceTensorNorms:
        return add_layers(kTensorNorms);
      case ActionType::Update:
        return add_layers(kUpdated);
      case ActionType::ExchangeData:
        return add_of_rank(kExchanged);
      default:
        return of_second_order();
    }
  }

 private:
  void of_second_order() {
    switch (action_.type) {
      case ActionType::CurvatureA:
      case ActionType::CurvatureB:
        return add(flow_.curvature_value(rank_, action_, action_.micro_batch,
                                         action_.type == ActionType::CurvatureB),
                   action_.age);
      case ActionType::ReduceCurvature:
        return add_factor(kCurvature);
      case ActionType::Invert:
      case ActionType::InverseRoot:
        return add_factor(action_.piece + 1 == action_.num_pieces ? kInverse
                                                                  : kFirstPiece + action_.piece + 0u);
      case ActionType::InvertLayers:
        return for_each_own_map(
            [&](const Action& map) { Outputs(flow_, rank_, map, values_).add_factor(kInverse); });
      case ActionType::AccumulateFactor:
        return add_layers(kFactor);
      case ActionType::Precondition:
        return add_layers(kPreconditioned);
      case ActionType::GatherPreconditioned:
        return add_layers(kGathered);
      default:
        base::check(false, "nobody says what an action of this type makes: {}", traits_of(action_.type).name);
    }
  }

  void of_forward() {
    const bool keeps_all = flow_.schedule_.problem.recomputation == Recomputation::None;
    for_each_segment([&](std::uint32_t segment) {
      add_of_micro_batch(kOutput, segment);
      if (keeps_all) add_of_micro_batch(kSaved, segment);
    });
    if (action_.end_layer != flow_.layers_.end(action_.stage)) return;
    const StageId next = StageId::at(action_.stage.index() + 1);
    if (next.index() == flow_.schedule_.num_stages()) {
      add_of_micro_batch(kOutputGradient);
    } else if (flow_.runner(next, action_.micro_batch) == rank_) {
      add_of_micro_batch(next, kInput);
    }
  }

  void of_backward() {
    for_each_segment([&](std::uint32_t segment) {
      add_of_micro_batch(kInputGradient, segment);
      if (action_.type == ActionType::Backward) add_weight_gradient(segment);
    });
    if (action_.stage.value == 0 || action_.first_layer != flow_.layers_.first(action_.stage)) return;
    const StageId previous = StageId::at(action_.stage.index() - 1u);
    if (flow_.runner(previous, action_.micro_batch) == rank_) add_of_micro_batch(previous, kOutputGradient);
  }

  void of_round() {
    const MicroBatchId micro_batch = flow_.micro_batch_of_round(rank_, action_.stage, action_.micro_batch);
    if (micro_batch.is_none()) return;
    flow_.add_scattered(rank_, action_.stage, micro_batch, action_.first_layer, action_.end_layer, values_);
  }

  void of_gather() {
    const MicroBatchId micro_batch = flow_.micro_batch_of_round(rank_, action_.stage, action_.micro_batch);
    if (micro_batch.is_none()) return;
    for_each_segment([&](std::uint32_t segment) {
      add(flow_.gathered_value(rank_, action_.stage, micro_batch, action_.type, segment));
    });
  }

  void add_of_micro_batch(MicroBatchKind kind, std::uint32_t segment = 0) {
    add_of_micro_batch(action_.stage, kind, segment);
  }
  void add_of_micro_batch(StageId stage, MicroBatchKind kind, std::uint32_t segment = 0) {
    add(flow_.micro_batch_value(rank_, stage, action_.micro_batch, kind, segment));
  }
  void add_weight_gradient(std::uint32_t segment) {
    add(flow_.weight_gradient_value(rank_, action_.stage, action_.micro_batch, segment));
  }
};

void Dataflow::outputs(Rank rank, const Action& action, std::vector<ValueRef>& values) const {
  values.clear();
  Outputs(*this, rank, action, values).gather();
}

}  // namespace plenum::schedule
