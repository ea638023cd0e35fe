#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "plenum/memory/divided_layers.h"
#include "plenum/optim/optimizer.h"
#include "plenum/pipeline/stage_program.h"
#include "plenum/schedule/core/refreshes.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::pipeline {

/// What of SOAP is actions of a schedule on one rank: factors follow the gradients in every step, and bases
/// follow the factors of some step when there is time for it. Of the matrices that the rank owns.
///
/// Adam's second moment lies in the eigenbasis. As in the whole step (kernels::soap_step) it is kept as it is
/// when a basis is refreshed, and the first moment is not in a basis at all: nothing has to be rotated, so a
/// refresh may come between any two steps.
class SoapWork {
 public:
  /// Borrows the optimizer. `kept_factors`: memory::RankMemory::soap_factors.
  SoapWork(const schedule::Schedule& schedule, const optim::Optimizer& optimizer,
           const std::vector<memory::DividedLayer>& divided, std::vector<tensor::TensorView> kept_factors);

  /// AccumulateFactor. `flat` says where gradients and scalars lie.
  void accumulate(const ActionRun& run, const tensor::Stream& stream, kernels::SoapFactors flat) const;
  /// InverseRoot: bases go an iteration on by the factors of the step that the action works on; in pieces,
  /// with the last of them. Nothing for those of step 0, of which bases are made at once.
  void refresh(const ActionRun& run, const tensor::Stream& stream, const tensor::TensorView& scalars_C) const;

 private:
  /// Of a matrix: its sides, and where their factors are kept.
  void keep_factors(const tensor::Stream& stream, std::size_t matrix, const tensor::TensorView& place) const;
  void refresh_in_pieces(const ActionRun& run, const tensor::Stream& stream, std::size_t matrix,
                         const tensor::TensorView& scalars_C) const;
  tensor::TensorView kept(std::size_t matrix, std::size_t side, const tensor::TensorView& place) const;

  const optim::Optimizer& optimizer_;
  schedule::Refreshes refreshes_;
  std::vector<std::vector<std::optional<std::size_t>>> matrix_of_map_;  ///< by layer and map, where own
  std::vector<tensor::TensorView> kept_factors_;
  std::vector<std::int64_t> kept_begin_;  ///< by matrix, in each of them
};

}  // namespace plenum::pipeline
