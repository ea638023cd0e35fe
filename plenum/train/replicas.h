#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plenum/base/function_ref.h"
#include "plenum/batch/step_batch.h"
#include "plenum/batch/work.h"
#include "plenum/describe/flops.h"
#include "plenum/model/parameters.h"
#include "plenum/pipeline/bert_program.h"
#include "plenum/pipeline/executor.h"
#include "plenum/plan/link.h"
#include "plenum/train/checkpoint.h"
#include "plenum/train/measured_step.h"
#include "plenum/train/mesh.h"
#include "plenum/train/model_parts.h"
#include "plenum/train/processes.h"
#include "plenum/train/training_observer.h"
#include "plenum/train/whole_model.h"
#include "plenum/workspace/optimizer.h"

namespace plenum::train {

/// The ranks of a run that this process has, each with its program, the executor that runs their steps, and
/// the steps under way: a GPU is given the next one before what came of the last is known, so that it never
/// waits for the host. Between steps all replicas have the same weights; a replica is a rank, or several that
/// hold the model together by layers (pipelines), by slices (tensor parallelism) or both.
class Replicas {
 public:
  using Clock = std::chrono::steady_clock;
  /// An action is a whole micro-batch: minutes of a large model on a slow machine are no hang, nor is what a
  /// GPU's first step measures.
  static constexpr std::chrono::minutes kHangLimit{30};

  /// Borrows the schedule, whose ranks are the places of the mesh. All memory is taken here, and the weights
  /// are zero. An action that takes longer than `hang_limit`, or ranks that wait for each other so long, are
  /// given up. With a link the ranks of a process on its own communicate as over it.
  Replicas(const Mesh& mesh, const schedule::Schedule& schedule, const pipeline::BertProgramOptions& options,
           const Processes& processes = {}, std::chrono::milliseconds hang_limit = kHangLimit,
           const std::optional<plan::Link>& emulated_link = std::nullopt);

  /// Of the whole model.
  const describe::ParameterTable& parameters() const { return parts_.whole(); }
  /// Of the whole model. Valid when no step is under way. In the device's memory; where ranks hold the model
  /// together in the host's, as the last gather_weights() left them.
  model::BertWeights weights() const;
  /// Whether ranks hold together, once begun, what passes read of the model.
  bool is_put_together() const { return whole_.has_value(); }
  /// Where they do: weights() in the order of parameters().
  const tensor::TensorView& whole_weights_N() const { return whole_->weights_N(); }
  /// Puts weights() together, where ranks hold the model together; by all processes at the same time.
  void gather_weights();
  const tensor::Stream& stream() const { return first().stream(); }
  /// What this process writes of a checkpoint, in the device's memory: the processes together have every
  /// element once. What ranks of several processes have alike, each writes a part of. To be read when no step
  /// is under way.
  CheckpointTensors tensors() const;
  /// Overwrites what the ranks of this process have with a checkpoint's. Before begin().
  void load(const FoundCheckpoint& checkpoint);
  /// Lets `write` overwrite the whole model's weights, in the host's memory. Before begin().
  void write_weights(base::FunctionRef<void(const tensor::TensorView&)> write);

  /// Begins or resumes at `first_step` with what was loaded or written, on all ranks of this process. To be
  /// called once before the first step, in all processes.
  void begin(std::uint64_t first_step, std::uint64_t num_updates);
  /// What is said of a step beside its data.
  struct StepRequest {
    double learning_rate = 0;
    Clock::time_point asked = Clock::now();  ///< when its data was asked for
    pipeline::DueByClock due = {};           ///< after it, by the clock of this process
    pipeline::DeviceTimes device_times = pipeline::DeviceTimes::Skipped;
  };
  /// Runs the next step on the batches of all replicas, or of the one that the rank of this process is of. On
  /// a GPU it may still run when this returns, with one more at most. What a rank threw for the user to mend
  /// is thrown as it is; anything else as the ExecutionError that names the action.
  void begin_step(std::span<const batch::StepBatch> batches, const StepRequest& request);
  /// Who is told of a hang that nothing here can end: pipeline::ExecutorOptions::on_stuck.
  void on_stuck(std::function<void(const pipeline::Failure&)> told) { on_stuck_ = std::move(told); }
  /// What came of the oldest step under way. Waits for it.
  StepReport end_step();
  /// Where the step under way is, in words; empty between steps. By any thread, once begun.
  std::string where() const { return executor_ ? executor_->where() : std::string(); }
  /// Steps that were begun and are not ended.
  std::size_t num_under_way() const { return under_way_.size(); }
  /// Steps of the run that were begun, those before this process with them.
  std::uint64_t num_begun() const { return num_ended_ + under_way_.size(); }
  /// Whether a step broke off: what lies in tensors() is of no use then.
  bool is_broken() const { return is_broken_; }
  /// Lets a step end with the word that a stop was asked for: BertProgram::ask_to_stop. From any thread.
  void ask_to_stop() { first().ask_to_stop(); }

  /// When the actions of the last step ran, if its request had their times recorded. Waits for it. By all
  /// processes.
  MeasuredStep measured();

 private:
  struct StepUnderWay {
    StepRequest request;
    batch::Work work;
    std::int64_t padded_tokens = 0;
  };

  /// Of the last step whose times were recorded, what its actions do not tell.
  struct RecordedStep {
    double waited_seconds = 0;                     ///< for its data
    std::vector<std::size_t> empty_micro_batches;  ///< of the ranks of this process
  };

  /// One of this process, by its place in programs_.
  base::Rank rank_of(std::size_t program) const;
  void gather_weights_of_processes();
  /// What passes read until the first step's update, where it is gathered from shards.
  void put_gathered_weights();
  /// Values of a rank in the host's memory: themselves, or a copy in `room`.
  std::span<float> on_host(std::span<float> values, std::vector<float>& room) const;
  /// Overwrites a piece of a program's flat buffer with what the whole has of it.
  void take_from_whole(std::size_t program, const model::FlatPiece& piece) const;

  /// Which of the elements that a rank has are meant.
  enum class Which : std::uint8_t {
    All,
    OfReplica,     ///< its share of what several ranks of its replica have; no other replica has the same
    OfAllReplicas  ///< its share of what several ranks have, of all replicas
  };
  /// Those of a parameter of its part.
  ModelParts::Elements share_of(base::Rank rank, std::size_t parameter, Which which) const;
  struct Pieces {
    std::vector<model::FlatPiece> weights, first_moments, second_moments;
  };
  /// Adds what a rank has of the whole model's weights or moments.
  void add_weights(std::size_t program, Which which, Pieces& pieces) const;
  void add_moments(std::size_t program, Which which, Pieces& pieces) const;
  enum class Of : bool { AllParameters, OthersThanMatrices };
  void add_piece(base::Rank rank, const model::FlatPiece& piece, Which which,
                 std::vector<model::FlatPiece>& pieces, Of of = Of::AllParameters) const;
  /// Of a program, the matrices whose factors, bases and second moments SOAP keeps there.
  std::vector<workspace::FlatMatrices> soap_matrices(std::size_t program) const;
  /// What a program keeps of its part's flat buffer: all of it, or its shard.
  static void for_each_weight(const pipeline::BertProgram& program,
                              base::FunctionRef<void(const model::FlatPiece&)> visit);
  /// Some of this process, from one on.
  struct Programs {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  /// What the optimizer of these programs keeps beside moments.
  std::vector<StateTensor> states_of(const Programs& programs) const;
  CheckpointTensors tensors_of(Pieces pieces, const Programs& programs) const;
  void record(std::span<const batch::StepBatch> batches, const StepRequest& request);
  pipeline::BertProgram& first() const { return *programs_.front(); }
  /// With the communicators that they have in common with the ranks of other processes.
  std::vector<pipeline::LocalRank> ranks_here() const;

  const schedule::Schedule& schedule_;
  Processes processes_;
  Mesh mesh_;
  ModelParts parts_;
  describe::Flops flops_;
  tensor::Device device_;
  optim::OptimizerOptions optimizer_;
  bool divides_soap_;  ///< each matrix has one owner, who alone keeps what soap_matrices() says
  std::chrono::milliseconds hang_limit_;
  std::optional<plan::Link> emulated_link_;
  std::function<void(const pipeline::Failure&)> on_stuck_;
  std::vector<std::unique_ptr<pipeline::BertProgram>> programs_;
  std::optional<WholeModel> whole_;               ///< where ranks hold it together; until begun also shards
  std::unique_ptr<comm::Communicator> of_model_;  ///< where processes do: those that put it together
  std::optional<tensor::HostWindow> window_;      ///< of a GPU
  std::optional<pipeline::Executor> executor_;
  std::deque<StepUnderWay> under_way_;  ///< oldest first
  RecordedStep recorded_;
  std::uint64_t num_ended_ = 0;
  Clock::time_point end_of_step_;  ///< of the last that ended
  bool is_broken_ = false;
};

}  // namespace plenum::train
