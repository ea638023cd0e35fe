#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/comm/elements.h"
#include "plenum/memory/activation_layout.h"
#include "plenum/memory/activation_slots.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::pipeline {

/// Where what stages give each other lies on a rank: messages from and to stages of other ranks, and the
/// places of neighbours on the same one.
class StageMessages {
 public:
  /// Borrows the slots and their memory.
  StageMessages(const schedule::Schedule& schedule, schedule::Rank rank, const memory::ActivationSlots& slots,
                const memory::TrainingMemory& memory);

  /// What the stage of an action that names a micro-batch has of it in a step.
  const memory::Activations& activations(const schedule::Action& action, std::uint64_t step) const;

  /// What a send or receive of so many rows carries.
  comm::Elements message(const schedule::Action& message, std::uint64_t step, std::int64_t num_rows) const;

  /// Of a neighbour on this rank: where what an action makes for it goes, and in which of its slots that is.
  struct Place {
    tensor::TensorView rows_TD;
    std::size_t slot = 0;
  };
  /// The input of the next stage, for a forward that ends its own; none where that is not here.
  std::optional<Place> next_input(const schedule::Action& forward, std::uint64_t step) const;
  /// The output gradient of the stage before, for a backward that ends at its own first layer.
  std::optional<Place> previous_gradient(const schedule::Action& backward, std::uint64_t step) const;

 private:
  /// The slot of a stage that works on the action's micro-batch on this rank; none if it does not.
  std::optional<std::size_t> slot_here(std::size_t stage, const schedule::Action& action,
                                       std::uint64_t step) const;

  schedule::StageLayers layers_;
  std::size_t num_micro_batches_;
  std::vector<bool> runs_here_;  ///< by stage and micro-batch
  const memory::ActivationSlots& slots_;
  const memory::TrainingMemory& memory_;
};

}  // namespace plenum::pipeline
