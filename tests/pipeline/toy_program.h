#pragma once

#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "plenum/pipeline/stage_program.h"
#include "plenum/schedule/core/dataflow.h"

#include "tests/pipeline/toy_memory.h"
#include "tests/pipeline/toy_state.h"

namespace plenum::pipeline {

/// The toy model on one rank, in double precision: proves what a schedule computes. Throws InternalError at
/// everything that makes no sense (twice, too early, incomplete, not its own), so that a damaged schedule
/// stops here or gives other numbers. What belongs to micro-batches lies in the planned slots, messages too.
class ToyProgram : public StageProgram {
 public:
  /// Borrows the schedule and its dataflow.
  ToyProgram(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow, schedule::Rank rank);
  /// With another plan than the schedule's.
  ToyProgram(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow, schedule::Rank rank,
             schedule::RankSlots slots);

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
  void communicated(const ActionRun& run) override;
  void exchange_data(const ActionRun& run, comm::Communicator& ranks) override;

  /// What the rank holds, for comparison after a run.
  std::span<const Block> blocks(schedule::StageId stage, schedule::LayerId layer) const;
  /// The gradient of a parameter in the last step, as the update used it but unclipped; empty if this rank
  /// has none of it.
  Values final_gradient(schedule::StageId stage, schedule::LayerId layer, std::size_t block) const;
  /// The reduced K-FAC factors (A, then B) of a step, if they are still there.
  const Values* curvature_of(schedule::StageId stage, schedule::LayerId layer, std::size_t map,
                             std::uint64_t step);
  /// Makes the gradients that this rank counts of a stage not finite.
  void spoil_gradients(schedule::StageId stage);
  /// This rank's part of the loss of each step.
  const std::map<std::uint64_t, double>& losses() const { return losses_; }
  /// The steps that changed nothing, since the ranks agreed that a gradient is not finite.
  const std::vector<std::uint64_t>& skipped_steps() const { return skipped_steps_; }

 private:
  /// What the rank has of one of its stages.
  struct HeldStage {
    schedule::StageId stage;
    std::size_t holder = 0;  ///< which of the stage's holders this rank is
    std::size_t num_holders = 1;
    /// Who has the places of gradients in flight, by micro-batch and bucket; the last is that of the first
    /// layers.
    std::array<std::optional<std::pair<schedule::MicroBatchId, std::uint32_t>>,
               schedule::Dataflow::kBucketPlaces + 1>
        flights;
    /// Which bucket's parameters have been gathered into a place last.
    std::array<std::optional<std::uint32_t>, schedule::Dataflow::kBucketPlaces> gathered;
    std::vector<LayerState> layers;
    std::vector<MapState> maps;                                            ///< of each layer in turn
    std::map<schedule::MicroBatchId, StepRing<MicroBatchRecord>> records;  ///< of those it runs
  };

  void add_stage(schedule::StageId stage);

  HeldStage& held(schedule::StageId stage);
  const HeldStage& held(schedule::StageId stage) const;
  LayerState& layer_of(HeldStage& stage, std::size_t layer);
  MapState& map_of(HeldStage& stage, const schedule::Action& action);
  MicroBatchRecord& open_record(schedule::StageId stage, schedule::MicroBatchId micro_batch,
                                std::uint64_t step);
  MicroBatchRecord& record_of(const schedule::Action& action, std::uint64_t step);
  LayerRecord& layer_of(MicroBatchRecord& record, const schedule::Action& action, std::size_t layer);

  /// What a layer keeps of each of its maps, in memory.
  enum class MapPart : std::uint8_t { Input, Output, Error };
  std::span<double> values_of(schedule::TenantKind kind, const schedule::Action& action,
                              schedule::LayerId layer, std::uint64_t step);
  /// Of a stage as a whole.
  std::span<double> values_of(schedule::TenantKind kind, schedule::StageId stage,
                              schedule::MicroBatchId micro_batch, std::uint64_t step);
  std::span<double> kept_of(const schedule::Action& action, schedule::LayerId layer, std::uint64_t step);
  std::span<double> part_of(std::span<double> kept, MapPart part, std::size_t map) const;
  /// The input of the layer's first map is the layer's, which may be kept apart.
  std::span<const double> map_input(const schedule::Action& action, schedule::LayerId layer, std::size_t map,
                                    std::uint64_t step);

  /// compute (toy_program.cpp)
  void check_forward(const ActionRun& run, const HeldStage& place, const LayerState& state,
                     const LayerRecord& record) const;
  /// That the parameters which a pass reads are gathered.
  void check_gathered(const ActionRun& run, const LayerState& state) const;
  void embed(const MicroBatchRecord& record, std::span<double> output) const;
  Values run_layer(const LayerState& state, const Values& input, std::span<double> kept,
                   bool keeps_input) const;
  void hand_on(const ActionRun& run, MicroBatchRecord& record, const Values& output);
  void run_loss(const MicroBatchRecord& record, const Values& output, std::span<double> gradients,
                std::uint64_t step);
  void back_propagate(const ActionRun& run);
  Values back_through_layer(const LayerState& state, std::span<double> kept, Values gradient) const;
  void add_weight_gradients(const ActionRun& run);
  void add_weight_gradient(const ActionRun& run, schedule::LayerId layer, const MicroBatchRecord& record);
  std::size_t place_of_bucket(schedule::StageId stage, schedule::LayerId layer) const;
  void take_place_of_flight(const schedule::Action& action, schedule::LayerId layer);
  void add_table_gradient(Block& block, const ActionRun& run, const MicroBatchRecord& record);

  /// statistics, updates (toy_updates.cpp)
  void check_gradient(const HeldStage& stage, const LayerState& layer, std::uint64_t step) const;
  void check_ready(const HeldStage& stage, const LayerState& layer, std::uint64_t step) const;
  void check_owner(const schedule::Action& action) const;
  Values sum_curvature(HeldStage& stage, const schedule::Action& action, std::uint64_t step);
  Inverse& continue_inverse(const ActionRun& run);
  Values tied_gradient(std::uint64_t step) const;
  const Values& ready_gradient(const Block& block) const;
  void fill_agreement(std::uint64_t step);
  void take_agreement(std::uint64_t step);
  bool is_skipped(std::uint64_t step) const;
  void update_momentum(Block& block, const Values& gradient);
  void update_parameter(Block& block, double squares) const;

  /// communication (toy_communication.cpp)
  void fill_tied_gradient(const ActionRun& run);
  PartitionedElements tied_rows(const ActionRun& run);
  PartitionedElements to_partition_tied(const ActionRun& run);
  void communicated_tied(const ActionRun& run);
  /// Whether every holder updates all of it.
  bool is_shared(const Block& block) const { return block.is_tied && !dataflow_.shards_tied(rank_); }
  using Select = Values Block::*;
  template <typename Visit>
  void for_each_packed(const schedule::Action& action, Visit visit);
  void pack(const schedule::Action& action, Select what);
  void unpack(const schedule::Action& action, Select what);
  bool is_packed(const schedule::Action& action, const Block& block) const;
  /// Calls visit(block) for the tensors whose norms a stage's holders sum.
  template <typename Visit>
  void for_each_tensor(const schedule::Action& action, Visit visit);
  void fill_tensor_norms(const ActionRun& run);
  void communicated_gradient(const ActionRun& run);
  void communicated_round(const ActionRun& run);
  void check_gather(const ActionRun& run, const LayerState& state) const;
  void take_place_of_parameters(const schedule::Action& action);
  void communicated_parameters(const ActionRun& run);

  const schedule::Schedule& schedule_;
  const schedule::Dataflow& dataflow_;
  schedule::Rank rank_;
  ToyModel model_;
  double num_tokens_;
  std::size_t num_kept_steps_;
  ToyMemory memory_;
  bool exchanges_data_ = false;
  std::vector<HeldStage> stages_;
  std::map<std::uint64_t, double> losses_;

  std::vector<double> buffer_;  ///< of the data-parallel lane, which runs one collective at a time
  std::vector<std::size_t> counts_;
  Values tied_gradient_;
  std::uint64_t tied_step_ = kNever;
  Values tied_output_gradient_;  ///< where the halves are reduced by themselves, that of the last layers
  std::uint64_t tied_output_step_ = kNever;
  std::uint64_t tied_rows_step_ = kNever;
  std::uint64_t tied_whole_step_ = kNever;  ///< the parameter, after its owner updated it
  double squares_ = 0;                      ///< of what this rank counts
  std::uint64_t squares_step_ = kNever;
  double clipping_ = 1;
  std::vector<std::uint64_t> skipped_steps_;
  std::uint64_t agreed_step_ = kNever;
  std::atomic<std::uint64_t> exchanged_step_ = kNever;  ///< the copy lane may be a step ahead
};

}  // namespace plenum::pipeline
