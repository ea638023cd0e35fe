#pragma once

#include <cstdint>

#include "plenum/data/batches/sequence_exchange.h"
#include "plenum/schedule/simulate/cost_model.h"
#include "plenum/train/processes.h"
#include "plenum/train/run_options.h"
#include "plenum/train/run_plan.h"
#include "plenum/train/training_observer.h"

namespace plenum::train {

/// What a process knows when K-FAC's or SOAP's work is put into the bubbles of its pipeline.
struct BubbleFilling {
  const RunOptions& options;
  const Processes& processes;
  TrainingObserver& observer;
  data::SequenceExchange* exchange = nullptr;  ///< as of the run
  std::uint64_t available_bytes = 0;           ///< of the device's memory; 0 if that is not known
  bool is_resumed = false;
  const schedule::CostModel* costs = nullptr;  ///< what actions take; measured if null
};

/// Lets the run of a plan do K-FAC's curvature and inversions, or refresh SOAP's bases, in the bubbles of its
/// pipeline, if its options say so (RunOptions::fill), in cycles at whose end nothing waits. By all processes
/// at the same time, which then have the same schedule.
///
/// A run that is resumed keeps to the schedule that it has kept, if that is still of its steps. Otherwise a
/// few steps without filling are measured, with weights that are thrown away, and the first process fills
/// what they show to be idle. If that cannot be done within memory or otherwise, the plan stays as it is,
/// and a note says why.
void fill_bubbles(RunPlan& plan, const BubbleFilling& filling);

/// Whether K-FAC's statistics are taken in the step that they are of (BubbleFill::Fresh).
bool takes_fresh_statistics(const schedule::Schedule& filled);

/// Whether a schedule does the steps of a plain one and second-order work beside them, nothing else.
bool is_filled_from(const schedule::Schedule& filled, const schedule::Schedule& plain);

}  // namespace plenum::train
