#pragma once

#include <cstdint>
#include <memory>

#include "plenum/batch/capacity.h"
#include "plenum/batch/step_batch.h"
#include "plenum/describe/model_config.h"
#include "plenum/describe/parameter_shard.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/memory/rank_memory.h"
#include "plenum/model/flat_pieces.h"
#include "plenum/model/parameters.h"
#include "plenum/optim/optimizer.h"
#include "plenum/pipeline/stage_program.h"
#include "plenum/pipeline/step_outcome.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/tensor/cuda_partition.h"
#include "plenum/tensor/memory_layout.h"
#include "plenum/tensor/stream.h"

namespace plenum::pipeline {

struct BertProgramOptions {
  describe::ModelConfig model;
  batch::Capacity capacity;
  optim::OptimizerOptions optimizer = {};
  std::uint64_t seed = 0;                         ///< of dropout
  describe::TensorParallel tensor_parallel = {};  ///< which slice of the model the program holds
  tensor::Device device = tensor::Device::Cpu;
  tensor::Precision precision = tensor::precision_of(device);
  std::shared_ptr<const tensor::CudaPartition> partition = nullptr;  ///< of the GPU; null: all of it
  std::size_t num_threads = 1;                                       ///< of the CPU
  tensor::DType reduce_dtype = tensor::DType::Float32;  ///< in which gradients travel between ranks
  bool records_work = true;  ///< on a GPU: what repeats is recorded and started at once
};

/// Trains a BERT, or the stages or the slice of it that a rank holds: what the rank's share of a schedule's
/// actions do. All memory is planned and taken at once. Schedules of one stage or several (pipelines), any
/// number of ranks, on GPUs one process for each. What ranks divide of weights, gradients and moments the
/// schedule says.
///
/// On a GPU actions are issued: a step runs while the next is prepared, and two may be under way. Its outcome
/// is there when Executor::await_step() has returned; nothing else waits.
class BertProgram final : public StageProgram {
 public:
  /// Steps that may be under way at the same time: one runs, one is prepared.
  static constexpr std::size_t kStepsUnderWay = memory::kStepsUnderWay;

  /// Borrows the schedule. Throws UserError for a schedule that BERT does not train with, or if memory is
  /// short.
  BertProgram(const schedule::Schedule& schedule, schedule::Rank rank, const BertProgramOptions& options);
  ~BertProgram() override;

  /// The memory that a program with these takes, without taking it.
  static tensor::MemoryLayout plan_memory(const schedule::Schedule& schedule, schedule::Rank rank,
                                          const BertProgramOptions& options);
  /// The memory it has taken: what plan_memory said.
  const tensor::MemoryLayout& memory() const;

  /// Of the rank's stages and of the program's slice.
  const describe::ParameterTable& parameters() const;
  /// Flat, in the order of parameters(), or of the shard, in the device's memory. To be read and written
  /// between steps only, when the outcome of the last one is known.
  const optim::OptimizerBuffers& buffers() const;
  /// What of the parameters it updates, and so what buffers of the shard hold.
  const describe::ParameterShard& shard() const;
  /// What K-FAC keeps; empty where the schedule has none. As buffers().
  const memory::KfacMemory& kfac() const;
  /// Of its device.
  const tensor::Stream& stream() const;

  /// What passes read of the weights. Between steps; not where parameters are sharded, which are gathered for
  /// passes alone.
  const model::BertWeights& weights() const;
  /// Whether they are gathered at the end of every step from shards in buffers() that are of another type.
  /// Then they are put_weights() before the first.
  bool gathers_weights() const;
  void put_weights(const model::FlatPiece& piece);

  /// To be called once before the first step, when the weights and what the optimizer keeps lie in buffers():
  /// so many updates counted before. Later calls start anew from there.
  void begin(std::uint64_t num_updates);
  /// What the next step works on, how fast it learns, and what this rank's clock says is due after it.
  /// Borrows the batch until the actions of the step have returned. The step kStepsUnderWay before it must
  /// have ended (Executor::await_step).
  void begin_step(const batch::StepBatch& batch, double learning_rate, const DueByClock& due = {});
  /// Asks all ranks to stop: known to all as the outcome of the same step, the next to begin, or on the CPU
  /// the one under way if its gradient is not yet complete. From any thread.
  void ask_to_stop();
  /// Of a step that has ended, the last or the one before it, whose global batch was `global`.
  StepOutcome outcome(std::uint64_t step, const batch::Work& global) const;

  const tensor::WorkQueue* queue(schedule::Lane lane) override;
  void forward(const ActionRun& run) override;
  void backward(const ActionRun& run) override;
  void input_gradient(const ActionRun& run) override;
  void weight_gradient(const ActionRun& run) override;
  void recompute(const ActionRun& run) override;
  void curvature(const ActionRun& run) override;
  void invert(const ActionRun& run) override;
  void invert_layers(const ActionRun& run) override;
  void accumulate_factor(const ActionRun& run) override;
  void inverse_root(const ActionRun& run) override;
  void precondition(const ActionRun& run) override;
  void square_gradient(const ActionRun& run) override;
  void update_moments(const ActionRun& run) override;
  void update(const ActionRun& run) override;
  comm::ConstElements outgoing(const ActionRun& run) override;
  comm::Elements incoming(const ActionRun& run) override;
  comm::Elements to_reduce(const ActionRun& run) override;
  PartitionedElements to_partition(const ActionRun& run) override;
  PartitionedElements to_gather_besides(const ActionRun& run) override;
  void communicated(const ActionRun& run) override;

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace plenum::pipeline
