#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plenum/base/options.h"
#include "plenum/data/batches/training_data_options.h"
#include "plenum/optim/duration.h"
#include "plenum/optim/training_options.h"
#include "plenum/plan/link.h"
#include "plenum/plan/strategy.h"
#include "plenum/schedule/core/recomputation.h"
#include "plenum/schedule/core/sharding.h"
#include "plenum/tensor/device.h"
#include "plenum/train/mesh.h"
#include "plenum/train/task_settings.h"

namespace plenum::train {

/// What is to compute; none: what the machine has.
using DeviceChoice = std::optional<tensor::Device>;

using plan::BubbleFill;

/// Adds --device to a command's options.
void add_device_option(base::OptionTable& options, DeviceChoice& device);
/// The option --fill: what K-FAC and SOAP do in the bubbles of pipelines.
void add_fill_option(base::OptionTable& options, std::optional<BubbleFill>& fill);

/// Which step --trace and --overlay draw if nothing is said, from the start of the process: a prediction
/// takes the durations of actions from the steps before.
inline constexpr std::int64_t kTraceStep = 3;
inline constexpr std::int64_t kOverlayStep = 8;

/// What is for one process of a run alone: no other that takes the run up does it again unasked.
struct ProcessSettings {
  std::string stop_after;  ///< a time; none if empty
  std::string trace;
  std::string overlay;
  std::optional<std::int64_t> trace_step;  ///< 3, or kOverlayStep where a prediction is laid over
  std::string machine;                     ///< file by which steps are predicted; measured if empty
  std::optional<plan::Link> emulate_link;  ///< over which ranks of this process communicate
  std::string hang_limit = "30min";        ///< a time
  std::int64_t gpus = 0;                   ///< processes to start on this node, one for each GPU; 0: none
  std::int64_t restarts = 0;               ///< of these, after a failure
  std::string interface;                   ///< of the network, over which processes find each other
  bool json = false;
  bool quiet = false;

  std::int64_t drawn_step() const { return trace_step.value_or(overlay.empty() ? kTraceStep : kOverlayStep); }
};

/// How ranks that are processes sum over the network.
enum class Reduction : std::uint8_t {
  Direct,   ///< each owner of a slice adds in the order of the ranks: the bytes of as many threads
  Library,  ///< as the library likes
};

/// Where a run lives, how long it goes on and what it runs on.
struct RunSettings {
  std::string directory;
  optim::Duration steps{1000, optim::DurationUnit::Steps};
  std::int64_t seed = 0;
  DeviceChoice device;
  std::int64_t ranks = 1;
  bool share_gpu = false;                  ///< of one process, each with a part of the one GPU
  std::int64_t tp = 1;                     ///< ranks that divide every layer
  std::int64_t pp = 1;                     ///< ranks of a pipeline, which divide the layers of a model
  std::string schedule;                    ///< of a pipeline, or a file that has one; 1f1b if empty
  std::vector<std::int64_t> stage_layers;  ///< of its stages; balanced by operations if empty
  std::int64_t chunks = 2;                 ///< stages on a rank, where the schedule has several
  std::optional<BubbleFill> fill;          ///< RunOptions::fill() if absent
  schedule::Sharding shard = schedule::Sharding::None;
  std::optional<std::int64_t> bucket_bytes;  ///< kBucketBytes if absent
  std::optional<std::int64_t> threads;       ///< over all ranks; all cores if absent
  schedule::Recomputation recompute = schedule::Recomputation::None;
  Reduction reduction = Reduction::Direct;
  tensor::DType reduce_dtype = tensor::DType::Float32;  ///< in which gradients travel between ranks
  std::int64_t max_skipped_steps = 10;
  ProcessSettings process;

  base::OptionTable table();
};

/// What is trained: a preset, altered here and there, or the model of a directory.
struct ModelSettings {
  std::string preset;
  std::string init;
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t> width;
  std::optional<std::int64_t> heads;
  std::optional<std::int64_t> mlp_width;
  std::optional<std::int64_t> max_positions;
  std::optional<double> hidden_dropout;
  std::optional<double> attention_dropout;

  base::OptionTable table();
};

/// What people call the model: the preset, or the directory that its weights are from.
inline const std::string& model_name(const ModelSettings& model) {
  return model.init.empty() ? model.preset : model.init;
}

/// What becomes of a run whose checkpoint cannot be written.
enum class OnFullDisk { Stop, Continue };

struct CheckpointSettings {
  optim::Duration every{600, optim::DurationUnit::Seconds};
  std::int64_t keep = 2;
  OnFullDisk on_full_disk = OnFullDisk::Stop;

  base::OptionTable table();
};

struct EvaluationSettings {
  std::optional<optim::Duration> every;  ///< a tenth of the run if absent (RunPlan::evaluate_every)
  std::int64_t sequences = 1024;         ///< at most; 0: all that are held out
  /// Evaluations in a row without a new best after which the run ends; 0: it goes on.
  std::int64_t stop_when_worse = 0;

  base::OptionTable table();
};

/// Everything that decides what `train` and `finetune` do.
struct RunOptions {
  RunSettings run;
  ModelSettings model;
  data::TrainingDataOptions data;
  optim::TrainingOptions optimizer;
  CheckpointSettings checkpoint;
  EvaluationSettings evaluation;
  TaskSettings task;  ///< with a kind where the run fine-tunes

  /// Without those of a task where there is none.
  std::vector<base::OptionTable> tables();
  std::vector<base::OptionTable> all_tables();

  /// Throws UserError for settings that are wrong or contradict each other.
  void check() const;
  Mesh mesh() const;
  /// How the run is laid out. A schedule from a file counts as the pipeline of a run that names none.
  plan::Strategy strategy() const;
  /// Whether --schedule names a file rather than a pipeline.
  bool has_schedule_file() const;
  /// What K-FAC or SOAP does in the pipeline that there is: its bubbles are filled where nothing else is
  /// asked for. On the device that is settled.
  BubbleFill fill() const;
  /// Of matrices, by the optimizer and what is asked for its refreshes; in a pipeline that there is or is
  /// not.
  plan::MatrixWork matrix_work() const;
  /// Throws UserError for --fill with an optimizer or refreshes that it does not go with.
  void check_fill_choice() const;
  std::size_t threads_per_rank() const;
  std::chrono::milliseconds hang_limit() const;

 private:
  void check_fill() const;
  void check_model() const;
  void check_pipeline() const;
};

}  // namespace plenum::train
