#include "plenum/pipeline/stage_messages.h"

#include "plenum/base/check.h"

namespace plenum::pipeline {

using memory::Activations;
using schedule::Action;
using schedule::ActionType;
using schedule::StageId;
using tensor::TensorView;

StageMessages::StageMessages(const schedule::Schedule& schedule, schedule::Rank rank,
                             const memory::ActivationSlots& slots, const memory::TrainingMemory& memory)
    : layers_(schedule.problem),
      num_micro_batches_(schedule.problem.num_micro_batches),
      runs_here_(layers_.num_stages() * num_micro_batches_, false),
      slots_(slots),
      memory_(memory) {
  for (const Action& action : schedule.ranks[rank.index()].lane(schedule::Lane::Compute).actions()) {
    if (action.type != ActionType::Forward) continue;
    runs_here_[action.stage.index() * num_micro_batches_ + action.micro_batch.index()] = true;
  }
}

const Activations& StageMessages::activations(const Action& action, std::uint64_t step) const {
  return memory_
      .stages[slots_.stage_index(action.stage)][slots_.slot(step, action.stage, action.micro_batch)];
}

comm::Elements StageMessages::message(const Action& message, std::uint64_t step,
                                      std::int64_t num_rows) const {
  const Activations& kept = activations(message, step);
  TensorView place = kept.dx_TD;
  if (message.type == ActionType::SendActivation) place = kept.y_TD;
  if (message.type == ActionType::ReceiveActivation) place = kept.x_TD[layers_.first(message.stage).index()];
  const TensorView rows = place.first_rows(num_rows);
  return {{static_cast<std::byte*>(rows.raw()), rows.num_bytes()}, rows.dtype()};
}

std::optional<std::size_t> StageMessages::slot_here(std::size_t stage, const Action& action,
                                                    std::uint64_t step) const {
  if (!runs_here_[stage * num_micro_batches_ + action.micro_batch.index()]) return std::nullopt;
  return slots_.slot(step, StageId::at(stage), action.micro_batch);
}

std::optional<StageMessages::Place> StageMessages::next_input(const Action& forward,
                                                              std::uint64_t step) const {
  const std::size_t next = forward.stage.index() + 1;
  if (next == layers_.num_stages() || forward.end_layer != layers_.end(forward.stage)) return std::nullopt;
  const std::optional<std::size_t> slot = slot_here(next, forward, step);
  if (!slot) return std::nullopt;
  const std::size_t index = slots_.stage_index(StageId::at(next));
  return Place{memory_.stages[index][*slot].x_TD[forward.end_layer.index()], *slot};
}

std::optional<StageMessages::Place> StageMessages::previous_gradient(const Action& backward,
                                                                     std::uint64_t step) const {
  if (backward.stage.index() == 0 || backward.first_layer != layers_.first(backward.stage))
    return std::nullopt;
  const std::size_t previous = backward.stage.index() - 1;
  const std::optional<std::size_t> slot = slot_here(previous, backward, step);
  if (!slot) return std::nullopt;
  const std::size_t index = slots_.stage_index(StageId::at(previous));
  return Place{memory_.stages[index][*slot].dx_TD, *slot};
}

}  // namespace plenum::pipeline
