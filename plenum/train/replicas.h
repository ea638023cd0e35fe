#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plenum/pipeline/bert_program.h"
#include "plenum/pipeline/executor.h"
#include "plenum/trace/timeline.h"
#include "plenum/train/checkpoint.h"

namespace plenum::train {

/// The ranks of a run in this process, each with its program, and the executor that runs their steps. Between
/// steps all hold the same weights.
class Replicas {
 public:
  /// Borrows the schedule. All memory is taken here, and the weights are zero.
  Replicas(const schedule::Schedule& schedule, const pipeline::BertProgramOptions& options);

  /// The first rank's, which stand for all.
  const describe::ParameterTable& parameters() const { return first().parameters(); }
  const optim::OptimizerBuffers& buffers() const { return first().buffers(); }
  CheckpointTensors tensors() const;
  std::uint64_t num_updates() const { return first().num_updates(); }

  /// Copies what was written into the first rank's buffers to the others, and goes on from `first_step`. To
  /// be called once before the first step.
  void begin(std::uint64_t first_step, std::uint64_t num_updates);
  /// Runs the next step on what each rank's part of it is. What a rank threw for the user to mend is thrown
  /// as it is; anything else as the ExecutionError that names the action.
  const pipeline::StepOutcome& step(std::span<const model::StepBatch> batches, double learning_rate);
  /// Lets the step that is under way, or the next, end with the word that a stop was asked for. From any
  /// thread.
  void ask_to_stop() { first().ask_to_stop(); }

  /// When the actions of the last step ran.
  trace::Timeline timeline(std::string title) const;

 private:
  pipeline::BertProgram& first() const { return *programs_.front(); }

  const schedule::Schedule& schedule_;
  std::vector<std::unique_ptr<pipeline::BertProgram>> programs_;
  std::optional<pipeline::Executor> executor_;
};

}  // namespace plenum::train
