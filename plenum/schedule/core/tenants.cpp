#include "plenum/schedule/core/tenants.h"

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

using enum TenantKind;

Tenant of_layer(TenantKind kind, const Action& action, LayerId layer) {
  return {.kind = kind, .stage = action.stage, .micro_batch = action.micro_batch, .layer = layer};
}

}  // namespace

Tenant message_tenant(const Action& message, const StageLayers& layers) {
  const LayerId first = layers.first(message.stage);
  switch (message.type) {
    case ActionType::SendActivation:
      return of_layer(Output, message, first);
    case ActionType::ReceiveActivation:
      return of_layer(Input, message, first);
    case ActionType::SendGradient:
      return of_layer(InputGradient, message, first);
    case ActionType::ReceiveGradient:
      return of_layer(OutputGradient, message, first);
    default:
      base::check(false, "only sends and receives are messages: {}", traits_of(message.type).name);
  }
  return {};
}

TenantUses::TenantUses(const Dataflow& dataflow, Rank rank)
    : dataflow_(dataflow), rank_(rank), begins_(dataflow.layers().total(), false) {
  const RankProgram& program = dataflow.schedule().ranks[rank.index()];
  for (const StageId stage : program.stages) begins_[dataflow.layers().first(stage).index()] = true;
  for (const Action& action : program.lane(Lane::Compute).actions()) {
    if (action.type == ActionType::Forward || action.type == ActionType::Recompute) {
      begins_[action.first_layer.index()] = true;
    }
  }
}

void TenantUses::of(const Action& action, std::vector<TenantUse>& uses) const {
  uses.clear();
  switch (action.type) {
    case ActionType::Forward:
      add_forward(action, uses);
      break;
    case ActionType::Recompute:
      add_layers(action, uses);
      for (TenantUse& use : uses) use.is_written = use.tenant.kind == Recomputed;
      break;
    case ActionType::Backward:
    case ActionType::InputGradient:
      add_backward(action, uses);
      break;
    case ActionType::WeightGradient:
      add_layers(action, uses);
      add_head(action, uses);
      add_embedding(action, uses);
      break;
    case ActionType::CurvatureA:
      add_layers(action, uses);
      break;
    case ActionType::CurvatureB:
      add_kept(action, action.first_layer, uses);
      break;
    case ActionType::SendActivation:
    case ActionType::SendGradient:
      uses.push_back({message_tenant(action, dataflow_.layers())});
      break;
    case ActionType::ReceiveActivation:
    case ActionType::ReceiveGradient:
      uses.push_back({message_tenant(action, dataflow_.layers()), true});
      break;
    default:
      break;
  }
}

/// Reads all that there is of the action's layers.
void TenantUses::add_layers(const Action& action, std::vector<TenantUse>& uses) const {
  for (LayerId layer = action.first_layer; layer < action.end_layer; ++layer.value) {
    if (has_input(layer)) uses.push_back({of_layer(Input, action, layer)});
    add_kept(action, layer, uses);
  }
}

void TenantUses::add_kept(const Action& action, LayerId layer, std::vector<TenantUse>& uses) const {
  const Recomputation recomputation = dataflow_.schedule().problem.recomputation;
  if (recomputation != Recomputation::Full) uses.push_back({of_layer(Kept, action, layer)});
  if (recomputation != Recomputation::None) uses.push_back({of_layer(Recomputed, action, layer)});
}

void TenantUses::add_forward(const Action& action, std::vector<TenantUse>& uses) const {
  const StageLayers& layers = dataflow_.layers();
  const bool keeps = dataflow_.schedule().problem.recomputation != Recomputation::Full;
  for (LayerId layer = action.first_layer; layer < action.end_layer; ++layer.value) {
    const bool is_made_here = layer != action.first_layer || layer == LayerId{};
    if (has_input(layer)) uses.push_back({of_layer(Input, action, layer), is_made_here});
    if (keeps) uses.push_back({of_layer(Kept, action, layer), true});
  }
  const LayerId first = layers.first(action.stage);
  if (action.end_layer != layers.end(action.stage)) {
    if (has_input(action.end_layer)) uses.push_back({of_layer(Input, action, action.end_layer), true});
  } else if (action.stage.index() + 1 == layers.num_stages()) {
    uses.push_back({of_layer(Output, action, first), true});
    uses.push_back({of_layer(OutputGradient, action, first), true});
  } else if (const StageId next = StageId::at(action.stage.index() + 1);
             dataflow_.runner(next, action.micro_batch) == rank_) {
    uses.push_back({{Input, next, action.micro_batch, layers.first(next)}, true});
  } else {
    uses.push_back({of_layer(Output, action, first), true});
  }
}

void TenantUses::add_backward(const Action& action, std::vector<TenantUse>& uses) const {
  const StageLayers& layers = dataflow_.layers();
  add_layers(action, uses);
  if (action.end_layer == layers.end(action.stage)) {
    uses.push_back({of_layer(OutputGradient, action, layers.first(action.stage))});
    if (action.type == ActionType::Backward) add_head(action, uses);
  } else {
    uses.push_back({of_layer(InputGradient, action, action.end_layer)});
  }
  if (action.first_layer == layers.first(action.stage) && action.stage.value > 0) {
    const StageId previous = StageId::at(action.stage.index() - 1u);
    if (dataflow_.runner(previous, action.micro_batch) == rank_) {
      uses.push_back({{OutputGradient, previous, action.micro_batch, layers.first(previous)}, true});
      return;
    }
  }
  uses.push_back({of_layer(InputGradient, action, action.first_layer), true});
  if (action.type == ActionType::Backward) add_embedding(action, uses);
}

/// The weight gradient of the head, which goes with the last layer's.
void TenantUses::add_head(const Action& action, std::vector<TenantUse>& uses) const {
  const StageLayers& layers = dataflow_.layers();
  if (action.end_layer.index() != layers.total()) return;
  const LayerId first = layers.first(action.stage);
  uses.push_back({of_layer(Output, action, first)});
  uses.push_back({of_layer(OutputGradient, action, first)});
}

/// That of the embedding, which goes with the first layer's.
void TenantUses::add_embedding(const Action& action, std::vector<TenantUse>& uses) {
  if (action.first_layer == LayerId{}) uses.push_back({of_layer(InputGradient, action, {})});
}

}  // namespace plenum::schedule
