#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "plenum/batch/step_batch.h"
#include "plenum/memory/kfac_memory.h"
#include "plenum/model/map_views.h"
#include "plenum/model/micro_batch_views.h"
#include "plenum/optim/kfac.h"
#include "plenum/pipeline/map_gather.h"
#include "plenum/pipeline/stage_program.h"
#include "plenum/schedule/core/curvature_coverage.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/core/refreshes.h"

namespace plenum::pipeline {

/// The rows of a matrix that belong to sequences, as few ranges as there are.
std::vector<kernels::RowRange> rows_of_sequences(const batch::SequenceOffsets& sequences);
/// Of the rows that heads read, one objective after the other, each with as many rows as `views` has, those
/// that stand for a label.
std::vector<kernels::RowRange> rows_of_labels(const batch::MicroBatch& micro_batch,
                                              const model::MicroBatchViews& views,
                                              std::size_t num_objectives);

/// What K-FAC's actions do on one rank, and what of it ranks exchange.
class KfacWork {
 public:
  /// Borrows all of it. `queue`: where the work of the data-parallel lane goes, if that is a device.
  KfacWork(const optim::KfacOptions& options, const schedule::Schedule& schedule, schedule::Rank rank,
           const describe::ModelDescription& model, const memory::KfacMemory& memory,
           const model::BertGradients& gradients, std::optional<tensor::Stream> queue);

  /// Keeps what later work on the step must know: which rows are real. `views_of` gives a micro-batch of the
  /// rank as kernels read it, by its id.
  void begin_step(const batch::StepBatch& batch, std::size_t first_own, std::size_t num_own,
                  const std::function<const model::MicroBatchViews&(std::size_t)>& views_of);

  /// CurvatureA and CurvatureB: `kept` are the activations of the step that the action works on.
  void curvature(const ActionRun& run, const model::Pass& pass, const model::Activations& kept,
                 const model::Transients& transients);
  void invert(const ActionRun& run, const tensor::Stream& stream);
  void invert_layers(const ActionRun& run, const tensor::Stream& stream);
  void precondition(const ActionRun& run, const tensor::Stream& stream) const;
  /// When it has been decided whether a step is skipped.
  void settle(std::uint64_t step, const tensor::Stream& stream, const tensor::TensorView& scalars_C);

  /// ReduceCurvature and GatherPreconditioned, as StageProgram says.
  comm::Elements to_reduce(const ActionRun& run);
  PartitionedElements to_partition(const ActionRun& run) const { return gather_.to_partition(run); }
  void communicated(const ActionRun& run);

  const optim::Kfac& kfac() const { return kfac_; }

 private:
  /// Of a micro-batch of a step.
  struct RealRows {
    std::int64_t num_rows = 0;  ///< that are computed
    std::int64_t num_read = 0;
    std::vector<kernels::RowRange> tokens, labels;
  };
  struct StepRows {
    std::uint64_t step = 0;
    batch::Work global;
    std::vector<batch::Work> work;  ///< of every micro-batch of the global batch
    std::size_t first_own = 0;
    std::vector<RealRows> micro_batches;
  };

  const StepRows& rows_of_step(std::uint64_t step) const;
  optim::Inversion inversion_of(const ActionRun& run, const optim::MapId& map) const;
  /// Calls visit(MapId) for the own maps of an action's layers: first the same map of all layers, from the
  /// last to the first, as their gradients and inverses lie in memory.
  template <typename Visit>
  void for_each_own_map(const schedule::Action& action, Visit visit) const;
  /// Whether a map computes only rows that heads read.
  bool reads_labels(const optim::MapId& map) const;
  /// Those of a batch or micro-batch that a map computes.
  std::int64_t num_rows(const batch::Work& work, const optim::MapId& map) const;
  /// Of a step, those that a map's A or B covers.
  std::int64_t num_covered_rows(const StepRows& step, const optim::MapId& map,
                                schedule::ActionType side) const;
  /// Of the layers that the rank holds. Throws UserError if maps with the same input, whose A is one, cover
  /// different micro-batches.
  void find_own_sums(const schedule::Dataflow& dataflow, schedule::Rank rank, schedule::StageId stage,
                     std::size_t layer);
  /// A map's sum that travels, and whether the rank has added anything to it.
  struct OwnSum {
    tensor::TensorView sum;
    bool has_rows = false;
  };
  /// The first map with an input brings its A along.
  std::vector<OwnSum> sums_to_reduce(const ActionRun& run) const;

  const describe::ModelDescription& model_;
  const model::BertGradients& gradients_;
  Wire wire_;
  MapGather gather_;
  optim::Kfac kfac_;
  bool is_partial_;  ///< statistics may cover a part of the micro-batches
  schedule::CurvatureCoverage coverage_;
  std::vector<StepRows> steps_;  ///< by step, as many as may be worked on
  /// Of its maps, whether the rank runs a micro-batch that A, that B covers.
  struct HasRows {
    bool a = false;
    bool b = false;
  };
  std::vector<std::vector<HasRows>> has_rows_;
  /// By layer and first map of an input: the step whose A has been summed over ranks. Of the data lane.
  std::vector<std::vector<std::optional<std::uint64_t>>> reduced_a_;
  bool brings_a_ = false;  ///< of the map whose sums travel
};

}  // namespace plenum::pipeline
