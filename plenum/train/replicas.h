#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plenum/base/function_ref.h"
#include "plenum/batch/step_batch.h"
#include "plenum/model/parameters.h"
#include "plenum/pipeline/bert_program.h"
#include "plenum/pipeline/executor.h"
#include "plenum/trace/timeline.h"
#include "plenum/train/checkpoint.h"

namespace plenum::train {

/// When a step counts as hanging, and who is told.
struct HangWatch {
  /// For an action, or for all that wait for each other. An action is a whole micro-batch: minutes of a large
  /// model on a slow machine are no hang, nor is what a GPU's first step measures.
  std::chrono::milliseconds limit = std::chrono::minutes(30);
  /// Told of a hang that nothing here can end: pipeline::ExecutorOptions::on_stuck.
  std::function<void(const pipeline::Failure&)> on_stuck = {};
};

/// The ranks of a run in this process, each with its program, and the executor that runs their steps. Between
/// steps all hold the same weights.
class Replicas {
 public:
  /// Borrows the schedule. All memory is taken here, and the weights are zero.
  Replicas(const schedule::Schedule& schedule, const pipeline::BertProgramOptions& options,
           HangWatch watch = {});

  /// The first rank's, which stand for all.
  const describe::ParameterTable& parameters() const { return first().parameters(); }
  /// In the device's memory. Valid when no step is under way.
  model::FlatWeights weights() const;
  const tensor::Stream& stream() const { return first().stream(); }
  /// What a checkpoint holds, in the device's memory: to be written before begin(), and to be read when no
  /// step is under way.
  CheckpointTensors tensors() const;
  /// Lets `write` overwrite the weights, in the host's memory. Before begin().
  void write_weights(base::FunctionRef<void(const tensor::TensorView&)> write);

  /// Takes what was written into the first rank's tensors() on all ranks, and goes on from `first_step`. To
  /// be called once before the first step.
  void begin(std::uint64_t first_step, std::uint64_t num_updates);
  /// Runs the next step on what each rank's part of it is. On a GPU it may still run when this returns. What
  /// a rank threw for the user to mend is thrown as it is; anything else as the ExecutionError that names the
  /// action.
  void step(std::span<const batch::StepBatch> batches, double learning_rate,
            pipeline::DeviceTimes device_times = pipeline::DeviceTimes::Skipped);
  /// Of a step: the last, or the one before it. Waits for it.
  pipeline::StepOutcome outcome(std::uint64_t step);
  /// Lets the next step that begins end with the word that a stop was asked for. From any thread.
  void ask_to_stop() { first().ask_to_stop(); }

  /// When the actions of the last step ran; on a GPU, if their times were recorded. Waits for it.
  trace::Timeline timeline(std::string title);

 private:
  pipeline::BertProgram& first() const { return *programs_.front(); }

  const schedule::Schedule& schedule_;
  HangWatch watch_;
  std::vector<std::unique_ptr<pipeline::BertProgram>> programs_;
  std::optional<tensor::HostWindow> window_;  ///< of a GPU
  std::optional<pipeline::Executor> executor_;
};

}  // namespace plenum::train
