#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plenum/batch/work.h"
#include "plenum/pipeline/bert_program.h"
#include "plenum/train/device_memory.h"
#include "plenum/train/evaluation.h"
#include "plenum/train/memory_report.h"

namespace plenum::train {

/// A run before its first step.
struct RunSummary {
  std::uint64_t first_step = 0;  ///< that is to be done; those before are done already
  std::uint64_t num_steps = 0;   ///< of the whole run
  std::uint64_t steps_per_epoch = 0;
  std::string model_name;  ///< the preset, or the directory that the weights are from
  describe::ModelConfig model;
  std::int64_t num_parameters = 0;
  std::size_t num_ranks = 0;
  std::size_t ranks_per_model = 1;  ///< that hold a model together
  std::string pipeline;             ///< the schedule and the layers of its stages; empty without stages
  std::size_t threads_per_rank = 0;
  std::size_t micro_batches_per_rank = 0;
  double expected_tokens_per_step = 0;
  double learning_rate = 0;  ///< at its peak
  std::uint64_t warmup_steps = 0;
  std::string learning_rate_schedule;  ///< as --lr-schedule calls it
  std::string checkpoints;             ///< where they go
  std::string checkpoint_times;        ///< when, in words
  std::string evaluation_times;        ///< likewise; empty where nothing is evaluated
  std::string gpu;                     ///< its name; empty on the CPU
  double predicted_step_seconds = 0;   ///< in the mean; 0 if not known
  double product_rate = 0;             ///< FLOP/s that matrix products reach here; 0 if not known
  MemoryReport memory;                 ///< as planned
  DeviceMemory device_memory{tensor::Device::Cpu};
};

/// What a step did.
struct StepReport {
  std::uint64_t step = 0;  ///< counted from 1: this many are done
  pipeline::StepOutcome outcome;
  double learning_rate = 0;
  batch::Work work;                ///< of the global batch
  std::int64_t padded_tokens = 0;  ///< rows of padding that were computed beside them
  double seconds = 0;
  double flops = 0;  ///< useful ones: forward and backward, no padding, nothing computed again
};

/// How training tells whoever started it where it stands. The library never prints. Called from one thread,
/// but for on_hang.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;

  /// Not of a run that is finished: nothing begins.
  virtual void on_begin(const RunSummary& summary) = 0;
  virtual void on_step(const StepReport& report) = 0;
  virtual void on_evaluation(std::uint64_t step, const Evaluation& evaluation) = 0;
  virtual void on_checkpoint(std::uint64_t step, const std::string& path) = 0;
  /// What was chosen because the user did not say, in a line.
  virtual void on_choice(std::string_view line) = 0;
  /// A step was skipped, as `line` says: a note, unless somebody tells them apart.
  virtual void on_skip(std::string_view line) { on_note(line); }
  /// A fact worth one line, for instance what a resumed run does otherwise than before.
  virtual void on_note(std::string_view line) = 0;
  /// Several lines that belong together.
  virtual void on_table(std::string_view text) = 0;
  /// Something hangs, as `line` says: a step, its data, an evaluation or writing a file; and nothing in this
  /// process can end it. To end the process is all that is left: if this returns, train() waits until what
  /// hangs goes on, perhaps for ever. May come from another thread than the rest, while that one hangs, but
  /// not inside another call.
  virtual void on_hang(std::string_view line) = 0;
};

}  // namespace plenum::train
