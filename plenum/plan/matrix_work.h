#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/memory/kfac_memory.h"
#include "plenum/schedule/core/schedule.h"

namespace plenum::plan {

/// What becomes of K-FAC's curvature and inversions, and of SOAP's bases, in a pipeline.
enum class BubbleFill : std::uint8_t {
  Off,       ///< done outside bubbles, in the step whose statistics they take
  Deferred,  ///< spread over the bubbles of a cycle of steps, at whose end nothing waits
  Fresh      ///< K-FAC's curvature of as many micro-batches as find room in the bubbles of their own step
};

/// What an optimizer does with the matrices of layers beside, or in place of, what it does with all other
/// parameters: K-FAC's preconditioning, Muon's directions or SOAP's (schedule::Preconditioner::Shampoo).
struct MatrixWork {
  schedule::Preconditioner kind = schedule::Preconditioner::None;
  std::size_t every = 1;  ///< steps from one refresh to the next, outside bubbles
  BubbleFill fill = BubbleFill::Off;
  std::int64_t soap_limit = 1024;  ///< kernels::SoapStep's
  memory::RunningAverages kfac_averages = memory::RunningAverages::No;

  /// Whether matrices of layers are updated by themselves, and not by the update rule of all parameters.
  bool replaces_update() const { return schedule::follows_agreement(kind); }

  friend bool operator==(const MatrixWork&, const MatrixWork&) = default;
};

}  // namespace plenum::plan
