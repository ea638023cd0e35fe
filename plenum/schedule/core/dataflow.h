#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// A value on a rank that an action reads or makes: its number on that rank, and how many steps before the
/// running one it belongs to.
struct ValueRef {
  std::uint32_t index = 0;
  std::uint8_t age = 0;

  friend bool operator==(const ValueRef&, const ValueRef&) = default;
};

/// Which holder of a stage owns a linear map of one of its layers. They go round the holders map by map, each
/// through all layers: so what costs most, the same maps in every layer, spreads evenly.
constexpr std::size_t owner_index(std::size_t layer_of_stage, std::size_t factor, std::size_t num_layers,
                                  std::size_t num_holders) {
  return (factor * num_layers + layer_of_stage) % num_holders;
}

/// Derives from types and ids what every action reads and makes. This is the one place that knows; check,
/// simulate, fill and the executor all ask it.
///
/// Values lie on ranks and are numbered densely, so that readers keep arrays. Between ranks there are only
/// messages (a send and its receive wait for each other) and collectives (everyone in the group waits for
/// everyone). Values that belong to steps before the first one exist from the start.
class Dataflow {
 public:
  /// Borrows the schedule, which must be well formed (require_well_formed).
  explicit Dataflow(const Schedule& schedule);

  /// Overwrites `values` with what the action needs on its own rank before it starts.
  void inputs(Rank rank, const Action& action, std::vector<ValueRef>& values) const;
  /// Overwrites `values` with what exists on its own rank once it is done.
  void outputs(Rank rank, const Action& action, std::vector<ValueRef>& values) const;

  std::size_t num_values(Rank rank) const { return ranks_[rank.index()].num_values; }
  /// In words, for messages: "the output of stage 2 for micro-batch 3".
  std::string describe(Rank rank, std::uint32_t value_index) const;

  /// The rank that runs the forward of a stage for a micro-batch; none if no rank does.
  Rank runner(StageId stage, MicroBatchId micro_batch) const {
    return runners_[stage.index() * num_micro_batches_ + micro_batch.index()];
  }
  /// The ranks that hold a stage's parameters, ascending.
  std::span<const Rank> holders(StageId stage) const { return holders_[stage.index()]; }
  /// The holder that inverts and preconditions a linear map of a layer.
  Rank owner(StageId stage, LayerId layer, std::uint16_t factor) const;
  /// Whether the stage's update needs norms of tensors whose shards lie on several holders.
  bool exchanges_tensor_norms(StageId stage) const {
    return schedule_.problem.has_tensor_norms && is_sharded(stage);
  }
  /// Whether several holders of the stage divide its update among themselves.
  bool is_sharded(StageId stage) const {
    return schedule::is_sharded(schedule_.problem) && holders(stage).size() > 1;
  }
  /// Whether they divide its gradients too, and reduce them round by round.
  bool scatters_rounds(StageId stage) const {
    return schedule_.problem.sharding >= Sharding::Gradients && is_sharded(stage);
  }
  /// Whether they divide its parameters too, and gather them for every pass.
  bool gathers_rounds(StageId stage) const {
    return schedule_.problem.sharding == Sharding::Parameters && is_sharded(stage);
  }
  /// Whether a rank and others reduce the two halves of the tied parameter's gradient by themselves.
  bool reduces_tied_halves(Rank rank) const {
    return schedule_.problem.has_tied_halves && takes_part_in_tied(rank);
  }
  /// Whether each of them has a shard of the sum, and of the parameter's update.
  bool shards_tied(Rank rank) const { return reduces_tied_halves(rank) && is_sharded(StageId{}); }
  /// The micro-batch that a rank runs in a round (counts_rounds); none if it runs fewer.
  MicroBatchId micro_batch_of_round(Rank rank, StageId stage, MicroBatchId round) const;

  /// Of a stage whose gradients are reduced round by round, the ranges of layers that are reduced by
  /// themselves, counted from the last layers on, as backward comes to them.
  std::uint32_t bucket(LayerId layer) const { return bucket_of_layer_[layer.index()]; }
  /// Gradients of a micro-batch lie in one of these places until they are reduced: that of bucket b is place
  /// b mod kBucketPlaces; that of the stage's first layers has a place of its own. So a backward through a
  /// bucket begins when the bucket that had its place has been reduced, and a micro-batch's first when all of
  /// the micro-batch before has.
  ///
  /// Gathered parameters have places of their own of the same kind. Those of the stage's first layers, with
  /// which the embeddings lie that the head reads too, stay for the whole step (GatherParameters). Others are
  /// gathered when the layers that had their place are done, unless their place still has them: passes go
  /// through the layers and back, so the buckets where they turn are there already.
  static constexpr std::uint32_t kBucketPlaces = 2;
  /// The bucket of a stage's first layers; also, how many others there are.
  std::uint32_t first_layers_bucket(StageId stage) const { return bucket(layers_.first(stage)); }
  /// Whether a GatherForward or GatherBackward has something to gather: its place lost what a layer of the
  /// bucket needs.
  bool needs_gather(Rank rank, const Action& gather, std::uint32_t bucket) const;
  /// The ranks that take part in a collective, ascending.
  std::span<const Rank> group(const Action& action) const;
  /// The other end of a send or receive; none where the pipeline ends or no rank runs that stage.
  Rank peer(const Action& action) const;
  /// On the rank of a send, the value that says that the message is on its way.
  std::uint32_t sent_value(Rank rank, const Action& send) const;
  /// The action that must stand on the peer for a send or receive.
  Action counterpart(const Action& action) const;

  const Schedule& schedule() const { return schedule_; }
  const StageLayers& layers() const { return layers_; }
  /// How many steps back an action reads at most: its age, and one for the parameters that a step begins
  /// with.
  std::size_t max_age() const { return max_age_; }

  /// Parts of a stage at whose borders micro-batch actions begin or end.
  std::size_t num_segments(StageId stage) const { return num_segments_[stage.index()]; }

 private:
  /// Where the values of one held stage lie.
  struct StageBlock {
    StageId stage;
    MicroBatchId first = MicroBatchId::none();  ///< micro-batches that the rank may see there: [first, end)
    MicroBatchId end = {};
    std::uint32_t micro_batch_begin = 0;
    std::uint32_t micro_batch_stride = 0;
    std::uint32_t weight_begin = 0;
    std::uint32_t gathered_begin = 0;  ///< of stages whose parameters are gathered for every pass
    std::uint32_t curvature_begin = 0;
    std::uint32_t layer_begin = 0;
    std::uint32_t factor_begin = 0;
    /// Where curvature is partial, the keys of that which the rank makes, ascending.
    std::vector<std::uint64_t> curvature_keys = {};

    std::uint32_t span() const { return end.value - first.value; }
  };
  struct RankBlock {
    std::vector<StageBlock> stages;
    std::uint32_t rank_begin = 0;
    std::uint32_t num_values = 0;
  };

  class ActionValues;
  class Inputs;
  class Outputs;

  const StageBlock& block(Rank rank, StageId stage) const;
  std::uint32_t micro_batch_value(Rank rank, StageId stage, MicroBatchId micro_batch, std::uint32_t kind,
                                  std::uint32_t segment = 0) const;
  std::uint32_t weight_gradient_value(Rank rank, StageId stage, MicroBatchId micro_batch,
                                      std::uint32_t segment) const;
  /// Parameters as GatherForward or GatherBackward leaves them for a micro-batch.
  std::uint32_t gathered_value(Rank rank, StageId stage, MicroBatchId micro_batch, ActionType gather,
                               std::uint32_t segment) const;
  /// The number of a map's A (side 0) or B (1) of a micro-batch among all that a rank could have of the
  /// stage.
  std::uint64_t curvature_key(const StageBlock& place, const Action& action, MicroBatchId micro_batch,
                              std::uint32_t side) const;
  /// Nothing of what the rank does not make where curvature is partial.
  std::optional<std::uint32_t> curvature_value(Rank rank, const Action& action, MicroBatchId micro_batch,
                                               std::uint32_t side) const;
  std::uint32_t layer_value(Rank rank, StageId stage, LayerId layer, std::uint32_t kind) const;
  std::uint32_t factor_value(Rank rank, StageId stage, LayerId layer, std::uint16_t factor,
                             std::uint32_t kind) const;
  std::uint32_t segment_of(LayerId layer) const { return segment_of_layer_[layer.index()]; }

  std::string describe_of_micro_batch(const StageBlock& held, std::uint32_t value_index) const;
  std::string describe_of_layer(const StageBlock& held, std::uint32_t value_index) const;

  void find_runners();
  void find_segments();
  void find_buckets();
  void find_partial_curvature();
  void lay_out();

  template <typename Visit>
  void for_each_local_micro_batch(Rank rank, StageId stage, Visit visit) const;
  void add_weight_gradients(Rank rank, StageId stage, std::uint32_t segment,
                            std::vector<ValueRef>& values) const;
  void add_scattered(Rank rank, StageId stage, MicroBatchId micro_batch, LayerId first, LayerId end,
                     std::vector<ValueRef>& values) const;
  void add_gradient_place(Rank rank, const Action& backward, std::vector<ValueRef>& values) const;
  void add_parameters(Rank rank, const Action& pass, std::vector<ValueRef>& values) const;
  void add_parameter_place(Rank rank, const Action& gather, std::vector<ValueRef>& values) const;
  MicroBatchId micro_batch_before(Rank rank, StageId stage, MicroBatchId micro_batch) const;
  void add_final_gradients(Rank rank, StageId stage, LayerId first, LayerId end,
                           std::vector<ValueRef>& values) const;
  void add_ready_gradients(Rank rank, StageId stage, LayerId first, LayerId end,
                           std::vector<ValueRef>& values) const;
  void add_layers(Rank rank, StageId stage, LayerId first, LayerId end, std::uint32_t kind,
                  std::vector<ValueRef>& values) const;
  void add_tied_gradients(Rank rank, std::vector<ValueRef>& values) const;
  void add_tied_output_gradients(Rank rank, std::vector<ValueRef>& values) const;
  void add_reduced_tied(Rank rank, std::vector<ValueRef>& values) const;
  void add_curvature(Rank rank, const Action& action, std::vector<ValueRef>& values) const;
  bool takes_part_in_tied(Rank rank) const;

  const Schedule& schedule_;
  StageLayers layers_;
  std::size_t num_micro_batches_;
  bool has_exchange_ = false;
  std::uint32_t max_pieces_ = 1;
  std::size_t max_age_ = 1;
  std::vector<Rank> runners_;
  std::vector<std::vector<Rank>> holders_;
  std::vector<Rank> all_ranks_;
  std::vector<Rank> tied_ranks_;
  std::vector<std::uint32_t> segment_of_layer_;
  std::vector<std::uint32_t> num_segments_;
  std::vector<std::uint32_t> bucket_of_layer_;
  std::vector<RankBlock> ranks_;
};

}  // namespace plenum::schedule
