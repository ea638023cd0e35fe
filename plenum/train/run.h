#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plenum/comm/communicator.h"
#include "plenum/data/batches/sequence_exchange.h"
#include "plenum/model/inference.h"
#include "plenum/train/device_memory.h"
#include "plenum/train/processes.h"
#include "plenum/train/replicas.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/run_options.h"
#include "plenum/train/run_plan.h"
#include "plenum/train/run_policy.h"
#include "plenum/train/step_prediction.h"
#include "plenum/train/training_data.h"
#include "plenum/train/training_observer.h"
#include "plenum/train/training_state.h"
#include "plenum/train/tuning_file.h"

namespace plenum::train {

/// A run as this process has taken it up: what is open, locked, planned and loaded when its next step can
/// begin. What others borrow lies behind pointers, so a Run can be moved.
struct Run {
  std::chrono::steady_clock::time_point begin;  ///< of this process's part
  const RunOptions& options;
  DeviceMemory device_memory;
  Processes processes;
  std::unique_ptr<comm::Communicator> between_steps;  ///< of the processes, for what they decide together
  std::unique_ptr<const TrainingData> data;
  std::unique_ptr<RunDirectory> directory;  ///< of the first process
  std::unique_ptr<const RunPlan> plan;
  std::unique_ptr<StepPrediction> prediction;        ///< null where nobody wants to know
  std::unique_ptr<data::SequenceExchange> exchange;  ///< null where this process can read the whole dataset
  std::unique_ptr<Replicas> replicas;
  std::unique_ptr<model::BertInference> inference;  ///< none where no data is held out
  TuningFile tuning;
  TrainingState state;
  std::string checkpoint;  ///< that it was loaded from; empty where the run begins

  /// Whether no work is under way that a checkpoint of the run as it stands would lack, or none follows.
  bool may_save() const;
  /// Those that choose algorithms by measuring.
  std::vector<TunedStream> tuned_streams() const;
};

/// Opens a run, to begin it or to resume it from its newest checkpoint; all its processes do so at the same
/// time. Borrows the options. Throws UserError for whatever could refuse it, before a new run's directory is
/// made.
Run open_run(const RunOptions& options, std::unique_ptr<const TrainingData> data, TrainingObserver& observer,
             const Processes& processes = {});

/// The step that --trace and --overlay draw. Where none is asked for and steps form cycles, the first of a
/// cycle, the third or a later one.
std::uint64_t drawn_step(const Run& run);

/// Whether measured steps are laid over what earlier ones predict for them: where that is to be drawn, and
/// where steps form cycles, of which the machine alone tells less.
bool is_overlaid(const Run& run);

/// When an opened run pauses and ends.
RunCadence cadence_of(const Run& run);

/// What is told of an opened run before its next step. Measures what matrix products reach here, unless
/// progress is not shown.
RunSummary summarise(const Run& run);

}  // namespace plenum::train
