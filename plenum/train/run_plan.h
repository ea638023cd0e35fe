#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "plenum/data/batches/evaluation_batches.h"
#include "plenum/data/batches/step_batches.h"
#include "plenum/optim/learning_rate.h"
#include "plenum/pipeline/bert_program.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/train/memory_report.h"
#include "plenum/train/run_options.h"
#include "plenum/train/run_policy.h"
#include "plenum/train/training_data.h"

namespace plenum::train {

/// How often something is done between steps. Either may hold, or both.
struct Interval {
  std::uint64_t steps = 0;  ///< 0: not by steps
  double seconds = RunCadence::kNever;

  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Everything that follows from options, data and model before any memory is taken: what each step works on,
/// the schedule that it is, how long the run goes on, how large it is.
class RunPlan {
 public:
  /// Borrows the data. `attention_cost` is that of data::StepBatchSource; `rank` is the one that this
  /// process has; without, it has all ranks of the run. `given` is the schedule of the file that --schedule
  /// names. Throws UserError if options, data, model and that schedule do not belong together.
  RunPlan(const RunOptions& options, const TrainingData& data, const describe::ModelConfig& model,
          std::optional<base::Rank> rank = std::nullopt, double attention_cost = 1,
          std::optional<schedule::Schedule> given = std::nullopt);
  RunPlan(const RunPlan&) = delete;
  RunPlan& operator=(const RunPlan&) = delete;

  const data::StepBatchSource& batches() const { return batches_; }
  /// Nothing where no data is held out.
  const std::optional<data::EvaluationBatches>& held_out() const { return held_out_; }
  /// Its ranks are the places of the mesh.
  const schedule::Schedule& schedule() const { return schedule_; }
  /// How the run is laid out.
  plan::Strategy strategy() const { return options_.strategy(); }
  /// The same steps without K-FAC, where they are made, not given.
  schedule::Schedule plain_schedule() const;
  /// Plans with another schedule of the same steps from here on.
  void run_by(schedule::Schedule schedule) { schedule_ = std::move(schedule); }
  /// Of the first rank of this process.
  const pipeline::BertProgramOptions& program() const { return program_; }
  /// Of the model: what a step asks for.
  const optim::LearningRate& learning_rate() const { return *learning_rate_; }
  const Mesh& mesh() const { return mesh_; }
  /// The rank that this process has; none if it has all.
  std::optional<base::Rank> rank() const { return rank_; }
  /// The replica that it is one of; none if it has all.
  std::optional<base::Rank> replica() const;
  std::size_t evaluation_threads() const { return program_.num_threads * (rank_ ? 1 : mesh_.num_ranks()); }

  std::uint64_t num_steps() const { return num_steps_; }
  const Interval& checkpoint_every() const { return checkpoint_every_; }
  const Interval& evaluate_every() const { return evaluate_every_; }

  /// What this process will take: the arenas of its ranks, on the CPU batches and threads too.
  MemoryReport memory() const;
  /// With what of it some steps at equal distances do not touch.
  MemoryReport memory_of_steps() const;
  /// What of it depends on the schedule, of one rank or of all, if their steps were those of another one.
  std::size_t bytes_with(const schedule::Schedule& schedule, std::optional<base::Rank> rank) const;
  /// Throws UserError, with the numbers and the largest --micro-batch-tokens that would do, if that is more
  /// than the device has: `available_bytes`, 0 if that is not known.
  void require_memory(std::uint64_t available_bytes) const;

 private:
  optim::RunLength length() const;
  Interval interval_of(const optim::Duration& every, std::string_view what) const;
  /// Where none is asked for.
  Interval default_evaluation_interval() const;
  std::optional<batch::Capacity> evaluated() const;
  void add_largest_rank(MemoryReport& report) const;

  const RunOptions& options_;
  const TrainingData& data_;
  Mesh mesh_;
  std::optional<base::Rank> rank_;
  data::StepBatchSource batches_;
  std::optional<data::EvaluationBatches> held_out_;
  schedule::Schedule schedule_;
  pipeline::BertProgramOptions program_;
  std::uint64_t num_steps_;
  Interval checkpoint_every_;
  Interval evaluate_every_;
  std::optional<optim::LearningRate> learning_rate_;
};

}  // namespace plenum::train
