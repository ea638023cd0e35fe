#include "plenum/plan/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plenum/base/check.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/memory/activation_layout.h"
#include "plenum/memory/micro_batch_layout.h"
#include "plenum/plan/action_ops.h"
#include "plenum/plan/best_case.h"
#include "plenum/plan/matrix_bound.h"
#include "plenum/plan/matrix_ops.h"
#include "plenum/plan/pass_costs.h"
#include "plenum/plan/step_costs.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/generate/single.h"
#include "plenum/tensor/memory_plan.h"

namespace plenum::plan {
namespace {

using schedule::ActionType;

schedule::Schedule one_micro_batch(std::size_t num_layers, schedule::Recomputation recomputation) {
  return schedule::generate_single(
      {.stage_layers = {static_cast<std::uint16_t>(num_layers)}, .recomputation = recomputation});
}

/// The most that what it is rounded up to does not exceed.
template <typename Round>
std::int64_t rounded_within(double most, Round round) {
  auto count = static_cast<std::int64_t>(std::floor(most));
  while (count > 0 && static_cast<double>(round(count)) > most) {
    count = std::max<std::int64_t>(
        0, count - std::max<std::int64_t>(
                       1, static_cast<std::int64_t>(std::ceil(static_cast<double>(round(count)) - most))));
  }
  return count;
}

/// Sums over micro-batches, as passes count them: on the GPU in round numbers.
struct WorkSum {
  double count = 0;
  double rows = 0;
  double tokens = 0;
  double squared_lengths = 0;
  double sequences = 0;
  std::array<double, batch::kMostObjectives> labels = {};
  std::array<double, batch::kMostObjectives> real_labels = {};  ///< not rounded

  void add(const MicroBatchWork& work, tensor::Device device) {
    count += 1;
    rows += static_cast<double>(memory::computed_rows(work.rows, device));
    tokens += static_cast<double>(work.work.tokens);
    squared_lengths += static_cast<double>(work.work.squared_lengths);
    sequences += static_cast<double>(work.work.sequences);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] += static_cast<double>(memory::computed_labels(work.work.labels[i], device));
      real_labels[i] += static_cast<double>(work.work.labels[i]);
    }
  }

  /// In each quantity at most the mean: no dearer than micro-batches are in the mean, since what they cost
  /// grows with each, and never slower.
  MicroBatchWork mean(tensor::Device device) const {
    MicroBatchWork work;
    if (count == 0) return work;
    work.rows = rounded_within(rows / count, [&](auto n) { return memory::computed_rows(n, device); });
    work.work.tokens = std::min(work.rows, static_cast<std::int64_t>(tokens / count));
    work.work.squared_lengths = static_cast<std::int64_t>(squared_lengths / count);
    work.work.sequences = static_cast<std::int64_t>(sequences / count);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      work.work.labels[i] =
          rounded_within(labels[i] / count, [&](auto n) { return memory::computed_labels(n, device); });
    }
    return work;
  }
};

/// Seconds of the actions of one rank that has the whole model and one micro-batch.
class OneRankCosts {
 public:
  OneRankCosts(const describe::ModelDescription& slice, schedule::Recomputation recomputation,
               UpdateRule update, const Cluster& cluster)
      : num_layers_(slice.layers.size()),
        cluster_(at_best(cluster)),
        schedule_(one_micro_batch(num_layers_, recomputation)),
        recomputation_(recomputation),
        costs_(schedule_, {.model = slice, .update = update}, {.micro_batches = {MicroBatchWork()}},
               cluster_),
        ops_(slice, cluster.kind, recomputation),
        part_costs_(ops_, cluster_) {}

  PassSums passes(const MicroBatchWork& work) const {
    PassSums sums{.forward = sums_of(Pass::Forward, work),
                  .backward = sums_of(Pass::Backward, work),
                  .input_gradient = sums_of(Pass::InputGradient, work),
                  .weight_gradient = sums_of(Pass::WeightGradient, work)};
    if (recomputation_ == schedule::Recomputation::Mlp) sums.recompute = sums_of(Pass::RecomputeMlp, work);
    if (recomputation_ == schedule::Recomputation::Full) sums.recompute = sums_of(Pass::RecomputeFull, work);
    return sums;
  }
  /// Of the mean of some micro-batches; what heads read of them is not rounded here.
  LayerSums curvature(const WorkSum& works) const {
    ComputedWork computed = computed_work(works.mean(ops_.device()), ops_.model(), ops_.device());
    computed.real_labels = 0;
    for (std::size_t i = 0; i < ops_.model().heads.size(); ++i)
      computed.real_labels += works.real_labels[i] / works.count;
    const std::size_t num_maps = factor_shapes(ops_.model().layers.front()).size();
    const auto layer = [&](std::size_t index) {
      double seconds = 0;
      for (std::size_t map = 0; map < num_maps; ++map) {
        seconds += part_costs_.of(curvature_a_ops(ops_, index, map, computed)).total() +
                   part_costs_.of(curvature_b_ops(ops_, index, map, computed)).total();
      }
      return seconds;
    };
    LayerSums sums{.first = layer(0)};
    if (num_layers_ > 1) sums.last = layer(num_layers_ - 1);
    if (num_layers_ > 2) sums.middle = layer(1);
    return sums;
  }
  double of_all_layers(ActionType type) const {
    return costs_.seconds(schedule::Rank::at(0), {.type = type,
                                                  .stage = schedule::StageId::at(0),
                                                  .first_layer = schedule::LayerId::at(0),
                                                  .end_layer = schedule::LayerId::at(num_layers_)});
  }

 private:
  /// Gradients are overwritten by a rank's first micro-batch and added to by all others: each part counts as
  /// the cheaper of both.
  template <typename Part>
  double cheaper(Part part) const {
    return std::min(part_costs_.of(part(Gradients::Overwritten)).total(),
                    part_costs_.of(part(Gradients::AddedTo)).total());
  }
  LayerSums sums_of(Pass pass, const MicroBatchWork& work) const {
    const ComputedWork computed = computed_work(work, ops_.model(), ops_.device());
    if (computed.is_empty()) return {};
    const auto layer = [&](std::size_t index) {
      return cheaper([&](Gradients gradients) { return ops_.layer(index, pass, computed, gradients); });
    };
    LayerSums sums{.first = layer(0) + cheaper([&](Gradients gradients) {
                              return ops_.embedding(pass, computed, gradients);
                            })};
    if (num_layers_ > 1) sums.last = layer(num_layers_ - 1);
    if (num_layers_ > 2) sums.middle = layer(1);
    (num_layers_ > 1 ? sums.last : sums.first) +=
        cheaper([&](Gradients gradients) { return ops_.heads(pass, computed, gradients); });
    return sums;
  }

  std::size_t num_layers_;
  Cluster cluster_;
  schedule::Schedule schedule_;
  schedule::Recomputation recomputation_;
  StepCosts costs_;
  ActionOps ops_;
  PartCosts part_costs_;
};

void lower(std::int64_t& least, std::int64_t value) {
  least = std::min(least, value);
}

/// The least and the most of each quantity.
struct WorkRange {
  MicroBatchWork least = {.rows = std::numeric_limits<std::int64_t>::max(), .work = {}};
  MicroBatchWork most;

  void add(const MicroBatchWork& work) {
    if (least.rows == std::numeric_limits<std::int64_t>::max()) least = work;
    lower(least.rows, work.rows);
    lower(least.work.tokens, work.work.tokens);
    lower(least.work.squared_lengths, work.work.squared_lengths);
    lower(least.work.sequences, work.work.sequences);
    most.rows = std::max(most.rows, work.rows);
    most.work.tokens = std::max(most.work.tokens, work.work.tokens);
    most.work.squared_lengths = std::max(most.work.squared_lengths, work.work.squared_lengths);
    most.work.sequences = std::max(most.work.sequences, work.work.sequences);
    for (std::size_t i = 0; i < work.work.labels.size(); ++i) {
      lower(least.work.labels[i], work.work.labels[i]);
      most.work.labels[i] = std::max(most.work.labels[i], work.work.labels[i]);
    }
  }
};

}  // namespace

double LayerSums::of(std::size_t begin, std::size_t end, std::size_t num_layers) const {
  if (begin >= end) return 0;
  auto between = static_cast<double>(end - begin);
  double sum = 0;
  if (begin == 0) {
    sum += first;
    between -= 1;
  }
  if (end == num_layers && num_layers > 1) {
    sum += last;
    between -= 1;
  }
  return sum + between * middle;
}

LayerSums& LayerSums::operator+=(const LayerSums& other) {
  first += other.first;
  middle += other.middle;
  last += other.last;
  return *this;
}

LayerSums operator*(double factor, const LayerSums& sums) {
  return {.first = factor * sums.first, .middle = factor * sums.middle, .last = factor * sums.last};
}

PassSums& PassSums::operator+=(const PassSums& other) {
  forward += other.forward;
  backward += other.backward;
  input_gradient += other.input_gradient;
  weight_gradient += other.weight_gradient;
  recompute += other.recompute;
  curvature += other.curvature;
  return *this;
}

PassSums operator*(double factor, const PassSums& sums) {
  return {.forward = factor * sums.forward,
          .backward = factor * sums.backward,
          .input_gradient = factor * sums.input_gradient,
          .weight_gradient = factor * sums.weight_gradient,
          .recompute = factor * sums.recompute,
          .curvature = factor * sums.curvature};
}

WorkBound work_bound(const describe::ModelDescription& slice, schedule::Recomputation recomputation,
                     std::span<const StepWork> steps, std::size_t num_replicas, const Cluster& cluster,
                     Curvature curvature) {
  const OneRankCosts costs(slice, recomputation, UpdateRule::AdamW, cluster);
  WorkBound bound{.num_layers = slice.layers.size()};
  const double share = 1 / static_cast<double>(steps.size());
  for (const StepWork& step : steps) {
    WorkSum sum;
    WorkSum others;  // but the dearest of each replica, whichever it is
    WorkRange of_step;
    const std::size_t of_replica = step.micro_batches.size() / num_replicas;
    for (std::size_t replica = 0; replica < num_replicas; ++replica) {
      WorkRange range;
      std::size_t count = 0;
      for (std::size_t i = replica * of_replica; i < (replica + 1) * of_replica; ++i) {
        const MicroBatchWork& work = step.micro_batches[i];
        if (work.rows == 0) continue;
        sum.add(work, cluster.kind);
        others.add(work, cluster.kind);
        range.add(work);
        of_step.add(work);
        ++count;
      }
      if (count == 0) continue;
      WorkSum most;
      most.add(range.most, cluster.kind);
      others.count -= 1;
      others.rows -= most.rows;
      others.tokens -= most.tokens;
      others.squared_lengths -= most.squared_lengths;
      others.sequences -= most.sequences;
      for (std::size_t i = 0; i < most.labels.size(); ++i) others.labels[i] -= most.labels[i];
    }
    if (sum.count == 0) continue;
    const double replicas = static_cast<double>(num_replicas);
    bound.step += (share * sum.count / replicas) * costs.passes(sum.mean(cluster.kind));
    if (curvature == Curvature::Counted) {
      bound.step.curvature += (share * sum.count / replicas) * costs.curvature(sum);
    }
    if (others.count > 0 && others.rows > 0)
      bound.without_dearest += (share * others.count / replicas) * costs.passes(others.mean(cluster.kind));
    bound.smallest += share * costs.passes(of_step.least);
  }
  return bound;
}

ParameterBound parameter_bound(const describe::ModelDescription& slice, UpdateRule update,
                               const MatrixWork& matrices, TiedGradient tied, const Cluster& cluster) {
  const OneRankCosts costs(slice, schedule::Recomputation::None, update, cluster);
  const describe::ParameterTable table(slice);
  const std::size_t num_layers = slice.layers.size();
  const auto elements_of = [&](std::size_t layer) {
    const auto range = table.elements_of_layers(base::LayerId::at(layer), base::LayerId::at(layer + 1));
    return static_cast<double>(range.end - range.begin);
  };
  ParameterBound bound{.elements = {.first = elements_of(0)}};
  if (num_layers > 1) bound.elements.last = elements_of(num_layers - 1);
  if (num_layers > 2) bound.elements.middle = elements_of(1);
  const double all = bound.elements.of(0, num_layers, num_layers);
  bound.update_seconds_per_element = costs.of_all_layers(ActionType::Update) / all;
  bound.square_seconds_per_element = costs.of_all_layers(ActionType::SquareGradient) / all;
  if (tied == TiedGradient::ByItself && table.tied() != nullptr) {
    bound.tied_elements = static_cast<double>(table.tied()->num_elements());
    bound.elements.first -= bound.tied_elements;
  }
  bound.matrices = matrix_bound(slice, matrices, cluster);
  return bound;
}

namespace {

double planned_bytes(const describe::ModelDescription& slice, const Strategy& strategy,
                     const batch::Capacity& capacity, std::size_t begin, std::size_t end) {
  tensor::MemoryPlan plan(strategy.device, tensor::precision_of(strategy.device));
  memory::plan_training_memory(slice, memory::computed_capacity(capacity, strategy.device),
                               {.stages = {{.layers = {base::LayerId::at(begin), base::LayerId::at(end)}}},
                                .recompute = strategy.recomputation},
                               plan);
  return static_cast<double>(plan.layout().num_bytes());
}

}  // namespace

MemoryBound memory_bound(const describe::ModelDescription& slice, const Strategy& strategy,
                         const batch::Capacity& capacity) {
  const std::size_t num_layers = slice.layers.size();
  const auto bytes = [&](std::size_t begin, std::size_t end) {
    return planned_bytes(slice, strategy, capacity, begin, end);
  };
  MemoryBound bound;
  // By differences, which leave out what layers share.
  constexpr std::size_t kLeast = 4;
  if (num_layers >= kLeast) {
    bound.kept.middle = bytes(1, 3) - bytes(1, 2);
    bound.kept.first = std::max(0.0, bytes(0, 2) - bytes(1, 2));
    bound.kept.last = std::max(0.0, bytes(num_layers - 2, num_layers) - bytes(1, 2));
    bound.kept.last = std::min(bound.kept.last, bytes(num_layers - 1, num_layers));
  }
  const describe::ParameterTable table(slice);
  const auto elements_of = [&](std::size_t layer) {
    const auto range = table.elements_of_layers(base::LayerId::at(layer), base::LayerId::at(layer + 1));
    return static_cast<double>(range.end - range.begin);
  };
  bound.parameters.first = elements_of(0);
  if (num_layers > 1) bound.parameters.last = elements_of(num_layers - 1);
  if (num_layers > 2) bound.parameters.middle = elements_of(1);
  const tensor::Precision precision = tensor::precision_of(strategy.device);
  const auto size_of = [&](tensor::Role role) {
    return static_cast<double>(tensor::size_of(precision.of(role)));
  };
  const double master = size_of(tensor::Role::Master);
  const double compute = precision.shares_weights() ? 0 : size_of(tensor::Role::Weight);
  const double gradients = size_of(tensor::Role::Gradient);
  const double moments = 2 * size_of(tensor::Role::State);
  bound.bytes_per_parameter = master + compute + gradients + moments;
  if (strategy.sharding == schedule::Sharding::None) return bound;
  bound.sharded_bytes_per_parameter = moments + (precision.shares_weights() ? 0 : master);
  if (strategy.sharding >= schedule::Sharding::Gradients) bound.sharded_bytes_per_parameter += gradients;
  if (strategy.sharding == schedule::Sharding::Parameters) {
    bound.sharded_bytes_per_parameter = bound.bytes_per_parameter - compute;
    bound.bytes_per_parameter -= compute;  // places of buckets are left out
  }
  return bound;
}

namespace {

/// The stages of a rank: at most one for each chunk, in steps of the depth, or two that meet from both ends.
template <typename Visit>
void for_each_stage(const BoundedStrategy& strategy, std::size_t rank, Visit visit) {
  const std::size_t num_stages = strategy.stage_begins.size() - 1;
  switch (strategy.placement) {
    case StagePlacement::InOrder:
      visit(rank);
      return;
    case StagePlacement::Chunks:
      for (std::size_t stage = rank; stage < num_stages; stage += strategy.depth) visit(stage);
      return;
    case StagePlacement::BothWays:
      visit(rank);
      visit(num_stages - 1 - rank);
      return;
  }
}

/// The better of both in each respect.
Link better(const Link& a, const Link& b) {
  return {.latency_seconds = std::min(a.latency_seconds, b.latency_seconds),
          .bytes_per_second = std::max(a.bytes_per_second, b.bytes_per_second)};
}

class LeastStep {
 public:
  LeastStep(const BoundedStrategy& strategy, const WorkBound& work, const ParameterBound& parameters,
            const Cluster& cluster)
      : strategy_(strategy),
        work_(work),
        parameters_(parameters),
        num_holders_(strategy.replicas * (strategy.placement == StagePlacement::BothWays ? 2 : 1)),
        any_link_(better(cluster.within_node, cluster.between_nodes)),
        link_(spans_nodes(cluster) ? cluster.between_nodes : any_link_),
        of_agreement_(agreement(cluster)) {}

  double seconds() const {
    // Between two agreements every rank updates what it has, passes micro-batches on, and sums gradients.
    const double first_begins = of_update(0);
    double most = 0;
    double before = first_begins;  // when the first micro-batch may come to a stage
    double behind = 0;             // from when the last has left a stage backwards
    for (std::size_t rank = 0; rank < strategy_.depth; ++rank) {
      if (strategy_.placement == StagePlacement::BothWays && 2 * rank >= strategy_.depth) break;
      most = std::max(most, of_rank(rank, std::max(before, of_update(rank)), behind));
      before += of(work_.smallest.forward, rank) + any_link_.latency_seconds;
      behind += backwards_through(rank) + any_link_.latency_seconds;
    }
    return most + of_agreement_;
  }

 private:
  bool spans_nodes(const Cluster& cluster) const {
    const std::size_t distance = strategy_.slices * strategy_.depth;
    return (strategy_.replicas - 1) * distance >= cluster.devices_per_node;
  }
  /// What all ranks tell each other is little, but they are many.
  double agreement(const Cluster& cluster) const {
    const std::size_t num_ranks = strategy_.replicas * strategy_.slices * strategy_.depth;
    const Link& link = num_ranks > cluster.devices_per_node ? cluster.between_nodes : cluster.within_node;
    return cluster.step_overhead_seconds + agreement_seconds(link, 0, num_ranks, cluster.kind).total();
  }
  double of(const LayerSums& sums, std::size_t stage) const {
    return sums.of(strategy_.stage_begins[stage], strategy_.stage_begins[stage + 1], work_.num_layers);
  }
  double elements_of(std::size_t rank) const {
    double elements = 0;
    for_each_stage(strategy_, rank, [&](std::size_t stage) { elements += of(parameters_.elements, stage); });
    return elements;
  }
  /// From when the gradient of a micro-batch comes to a stage to when that of its input is there. While it is
  /// waited for, the last layer may be computed again.
  double backwards_through(std::size_t stage) const {
    if (strategy_.splits_backward) return of(work_.smallest.input_gradient, stage);
    const std::size_t begin = strategy_.stage_begins[stage];
    const std::size_t end = strategy_.stage_begins[stage + 1];
    return of(work_.smallest.backward, stage) + work_.smallest.recompute.of(begin, end - 1, work_.num_layers);
  }
  bool is_sharded() const { return strategy_.sharding != schedule::Sharding::None && num_holders_ > 1; }
  double bytes(double elements) const { return elements * static_cast<double>(strategy_.reduced_bytes); }

  /// Of what a rank has: with the gathers of what others have updated, which passes wait for.
  double of_update(std::size_t rank) const {
    const double layers = num_layers_of(rank);
    const double elements = elements_of(rank) - layers * parameters_.matrices.elements;
    const double own = is_sharded() ? elements / static_cast<double>(num_holders_) : elements;
    return std::max(0.0, own) * parameters_.update_seconds_per_element +
           layers * parameters_.matrices.weight_seconds +
           of_matrices(rank, parameters_.matrices.update_seconds);
  }
  double num_layers_of(std::size_t rank) const {
    double layers = 0;
    for_each_stage(strategy_, rank, [&](std::size_t stage) {
      layers += static_cast<double>(strategy_.stage_begins[stage + 1] - strategy_.stage_begins[stage]);
    });
    return layers;
  }
  /// What a rank does for maps of its stages, in the mean over those of the replicas that are seen.
  double of_matrices(std::size_t rank, const std::vector<double>& seconds_of_maps) const {
    if (seconds_of_maps.empty()) return 0;
    const std::size_t of_replica = num_holders_ / strategy_.replicas;
    const std::size_t num_seen = of_replica * strategy_.num_seen_replicas;
    const std::size_t num_owners = of_replica * strategy_.num_written_replicas;
    const double share = static_cast<double>(num_owners) / static_cast<double>(num_holders_);
    double seconds = 0;
    for_each_stage(strategy_, rank, [&](std::size_t stage) {
      const std::size_t num_layers = strategy_.stage_begins[stage + 1] - strategy_.stage_begins[stage];
      for (std::size_t map = 0; map < seconds_of_maps.size(); ++map) {
        double count = 0;
        for (std::size_t layer = 0; layer < num_layers; ++layer) {
          const std::size_t owner = schedule::owner_index(layer, map, num_layers, num_owners);
          if (owner < num_seen) count += share / static_cast<double>(num_seen);
        }
        if (!strategy_.divides_matrices) count = static_cast<double>(num_layers);
        seconds += count * seconds_of_maps[map];
      }
    });
    return seconds;
  }

  /// The sum of a part of a stage's gradients, in so many pieces.
  double reduction(double elements, std::size_t num_pieces = 1) const {
    if (num_holders_ < 2) return 0;
    const LinkSeconds seconds = strategy_.sharding == schedule::Sharding::None
                                    ? all_reduce_seconds(link_, bytes(elements), num_holders_)
                                    : gather_seconds(link_, bytes(elements), num_holders_);
    return seconds.bandwidth + static_cast<double>(num_pieces) * seconds.latency;
  }
  /// Behind the last pass over the first layers of a stage.
  double last_reduction(std::size_t stage) const {
    const std::size_t begin = strategy_.stage_begins[stage];
    const std::size_t num_layers = strategy_.stage_begins[stage + 1] - begin;
    const std::size_t of_bucket = num_layers / std::min(strategy_.num_buckets, num_layers);
    return reduction(parameters_.elements.of(begin, begin + of_bucket, work_.num_layers));
  }
  double of_tied() const {
    if (!strategy_.is_tied_apart || parameters_.tied_elements == 0) return 0;
    return all_reduce_seconds(any_link_, bytes(parameters_.tied_elements), 2).total();
  }
  double of_squares(std::size_t rank) const {
    return elements_of(rank) / static_cast<double>(num_holders_) * parameters_.square_seconds_per_element;
  }

  /// From the agreement before to that of the step.
  double of_rank(std::size_t rank, double begin, double behind) const {
    double compute = 0;
    double held_back = 0;
    double curvature = 0;
    for_each_stage(strategy_, rank, [&](std::size_t stage) {
      compute += of(work_.step.forward, stage);
      curvature += strategy_.curvature_share * of(work_.step.curvature, stage);
      if (!strategy_.splits_backward) {
        compute += of(work_.step.backward, stage) + of(work_.step.recompute, stage);
        return;
      }
      compute += of(work_.step.input_gradient, stage) + of(work_.step.weight_gradient, stage);
      held_back += of(work_.step.weight_gradient, stage);
    });
    // Two ranks share the micro-batches of two stages; one of them has half or more.
    if (strategy_.placement == StagePlacement::BothWays) {
      compute /= 2;
      curvature /= 2;
    }
    const double matrices = of_matrices(rank, parameters_.matrices.step_seconds);
    const double own = begin + compute + curvature + matrices + of_squares(rank);
    const double through = begin + compute - held_back + behind + last_reduction(0) + of_tied();
    return std::max({own, through, with_all_reductions(rank, begin)});
  }

  /// Sums follow each other; the first comes when the last backward has begun.
  double with_all_reductions(std::size_t rank, double begin) const {
    if (strategy_.placement != StagePlacement::InOrder || num_holders_ < 2) return 0;
    const std::size_t num_layers = strategy_.stage_begins[rank + 1] - strategy_.stage_begins[rank];
    double sums = reduction(elements_of(rank), std::min(strategy_.num_buckets, num_layers));
    const double passes = strategy_.splits_backward ? 0
                                                    : of(work_.without_dearest.forward, rank) +
                                                          of(work_.without_dearest.backward, rank) +
                                                          of(work_.without_dearest.recompute, rank);
    // Round by round, whether a micro-batch is empty or not.
    if (strategy_.sharding >= schedule::Sharding::Gradients) {
      return begin + static_cast<double>(strategy_.micro_batches) * sums;
    }
    if (strategy_.is_tied_apart && (rank == 0 || rank + 1 == strategy_.depth)) sums += of_tied();
    return begin + passes + sums + of_squares(rank);
  }

  const BoundedStrategy& strategy_;
  const WorkBound& work_;
  const ParameterBound& parameters_;
  std::size_t num_holders_;
  Link any_link_;
  Link link_;
  double of_agreement_;
};

}  // namespace

double least_step_seconds(const BoundedStrategy& strategy, const WorkBound& work,
                          const ParameterBound& parameters, const Cluster& cluster) {
  return LeastStep(strategy, work, parameters, cluster).seconds();
}

double least_peak_bytes(const BoundedStrategy& strategy, const MemoryBound& memory) {
  const std::size_t num_layers = strategy.stage_begins.back();
  const double whole = memory.bytes_per_parameter - memory.sharded_bytes_per_parameter;
  const double of_shard = memory.sharded_bytes_per_parameter / static_cast<double>(strategy.replicas);
  double most = 0;
  for (std::size_t rank = 0; rank < strategy.depth; ++rank) {
    double bytes = 0;
    const std::size_t alive = strategy.alive_micro_batches > rank ? strategy.alive_micro_batches - rank : 1;
    for_each_stage(strategy, rank, [&](std::size_t stage) {
      const std::size_t begin = strategy.stage_begins[stage];
      const std::size_t end = strategy.stage_begins[stage + 1];
      bytes += (whole + of_shard) * memory.parameters.of(begin, end, num_layers) +
               static_cast<double>(alive) * memory.kept.of(begin, end, num_layers);
    });
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace plenum::plan
