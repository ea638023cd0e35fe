#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plenum/describe/model_description.h"
#include "plenum/plan/cluster.h"
#include "plenum/plan/link.h"
#include "plenum/plan/matrix_bound.h"
#include "plenum/plan/step_sampler.h"
#include "plenum/plan/strategy.h"

namespace plenum::plan {

// What a step takes at least, in closed form: plain numbers, made once for what many strategies have in
// common, and a few sums for each of them. Simulated steps never take less, so a search that looks at
// strategies in the order of their bounds and stops when bounds exceed what it has found loses nothing.

/// A quantity that is additive over layers: of the first with the embedding, of one between, of the last with
/// the heads. In a model of one layer all of it is the first's.
struct LayerSums {
  double first = 0;
  double middle = 0;
  double last = 0;

  /// Of layers [begin, end).
  double of(std::size_t begin, std::size_t end, std::size_t num_layers) const;
  LayerSums& operator+=(const LayerSums& other);
  friend LayerSums operator*(double factor, const LayerSums& sums);
};

/// Seconds of passes over micro-batches.
struct PassSums {
  LayerSums forward;
  LayerSums backward;         ///< without recomputation
  LayerSums input_gradient;   ///< of backward, what the stage before waits for
  LayerSums weight_gradient;  ///< the rest
  LayerSums recompute;
  LayerSums curvature;  ///< K-FAC's, where it is asked for

  PassSums& operator+=(const PassSums& other);
  friend PassSums operator*(double factor, const PassSums& sums);
};

/// Of one number of slices, one cut of steps and one recomputation: what the passes of a replica take at
/// least, at the best efficiencies that the device has for operations of each kind.
struct WorkBound {
  std::size_t num_layers = 0;
  PassSums step;             ///< all micro-batches of a replica, in the mean over replicas
  PassSums without_dearest;  ///< all but any one of them
  PassSums smallest;         ///< one micro-batch, whichever it is
};

enum class Curvature : bool { LeftOut, Counted };
/// Of the replicas of some steps that are looked at, by ids that count from 0. Each step has as many.
WorkBound work_bound(const describe::ModelDescription& slice, schedule::Recomputation recomputation,
                     std::span<const StepWork> steps, std::size_t num_replicas, const Cluster& cluster,
                     Curvature curvature = Curvature::LeftOut);

/// Of one number of slices and one update rule: what belongs to parameters.
struct ParameterBound {
  LayerSums elements;        ///< that ranks sum the gradients of; a tied word table only where it goes along
  double tied_elements = 0;  ///< of a word table that goes by itself
  double update_seconds_per_element = 0;
  double square_seconds_per_element = 0;
  MatrixBound matrices = {};
};
enum class TiedGradient : std::uint8_t { WithItsLayers, ByItself };
/// In steps with this work on matrices; only what cannot be in bubbles where these are filled.
ParameterBound parameter_bound(const describe::ModelDescription& slice, UpdateRule update,
                               const MatrixWork& matrices, TiedGradient tied, const Cluster& cluster);

/// Of one number of slices, one capacity and one recomputation: bytes of what a micro-batch keeps, and of
/// parameters with all that is kept for each.
struct MemoryBound {
  LayerSums kept;
  LayerSums parameters;            ///< without the embedding's rows that a last stage holds beside the first
  double bytes_per_parameter = 0;  ///< where nothing is sharded
  double sharded_bytes_per_parameter = 0;  ///< of them, what a shard is kept of, by what is sharded
};
MemoryBound memory_bound(const describe::ModelDescription& slice, const Strategy& strategy,
                         const batch::Capacity& capacity);

/// How stages lie on the ranks of a replica.
enum class StagePlacement : std::uint8_t {
  InOrder,   ///< one on each
  Chunks,    ///< several on each, round and round
  BothWays,  ///< each stage on two ranks, from both ends
};

/// A strategy as its bound sees it.
struct BoundedStrategy {
  std::size_t replicas = 1;
  std::size_t slices = 1;
  std::size_t depth = 1;
  StagePlacement placement = StagePlacement::InOrder;
  bool splits_backward = false;
  bool is_tied_apart = false;                   ///< first and last stage share a table: a sum of its own
  std::span<const std::uint16_t> stage_begins;  ///< first layer of each stage, and the end
  std::size_t num_buckets = 1;                  ///< of a stage
  schedule::Sharding sharding = schedule::Sharding::None;
  std::size_t micro_batches = 1;  ///< of a replica, empty ones included
  std::size_t reduced_bytes = 4;
  bool divides_matrices = false;         ///< holders of a stage do, instead of each doing all
  std::size_t num_seen_replicas = 1;     ///< the first ones, that `work` is of
  std::size_t num_written_replicas = 1;  ///< that divide work on matrices in place of all
  double curvature_share = 0;            ///< of the steps that K-FAC takes curvature in, outside bubbles
  std::size_t alive_micro_batches = 1;   ///< that the first rank keeps at least at a time; each next one less
};

/// No step of the schedule takes less on the cluster, in the mean over the steps that `work` is made of.
double least_step_seconds(const BoundedStrategy& strategy, const WorkBound& work,
                          const ParameterBound& parameters, const Cluster& cluster);

/// The rank that takes the most takes no less.
double least_peak_bytes(const BoundedStrategy& strategy, const MemoryBound& memory);

}  // namespace plenum::plan
