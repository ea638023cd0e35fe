#include "plenum/plan/step_costs.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/plan/action_ops.h"
#include "plenum/plan/distinct_words.h"
#include "plenum/plan/element_bytes.h"
#include "plenum/plan/exchange_costs.h"
#include "plenum/plan/make_op.h"
#include "plenum/plan/matrix_ops.h"
#include "plenum/plan/pass_costs.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/tensor/dtype.h"

namespace plenum::plan {

using describe::FactorShape;
using schedule::Action;
using schedule::ActionType;
using schedule::LayerId;
using schedule::MicroBatchId;
using schedule::Preconditioner;
using schedule::Rank;
using schedule::Schedule;
using schedule::StageId;

namespace {

std::size_t num_slices_of(const describe::ModelDescription& model) {
  return model.tensor_parallel.size;
}

OpKind kind_of(UpdateRule rule) {
  return rule == UpdateRule::Lamb ? OpKind::Lamb : OpKind::AdamW;
}

double matrix_elements(const std::vector<FactorShape>& shapes) {
  double elements = 0;
  for (const FactorShape& shape : shapes)
    elements += static_cast<double>(shape.in_width) * static_cast<double>(shape.out_width);
  return elements;
}

/// So many times as many operations.
std::vector<Op> times(double factor, std::vector<Op> ops) {
  for (Op& op : ops) op.count *= factor;
  return ops;
}

double elements_in(const describe::ParameterTable::ElementRange& range) {
  return static_cast<double>(range.end - range.begin);
}

/// What a thing is remembered by: the action without what does not matter to it, and a number beside.
struct Key {
  Action action;
  std::uint64_t other = 0;
  friend bool operator==(const Key&, const Key&) = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    const Action& a = key.action;
    std::uint64_t hash = static_cast<std::uint64_t>(a.type) | std::uint64_t{a.stage.value} << 8 |
                         std::uint64_t{a.first_layer.value} << 24 | std::uint64_t{a.end_layer.value} << 40;
    hash ^= (key.other << 20 | a.factor) * 0x9E3779B97F4A7C15u;
    hash *= 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 32;
  }
};

}  // namespace

ActionParts& ActionParts::operator+=(const ActionParts& other) {
  device += other.device;
  link += other.link;
  return *this;
}

struct StepCosts::State {
  State(const Schedule& run, StepCostOptions settings, const Cluster& on)
      : schedule(run),
        options(std::move(settings)),
        cluster(on),
        dataflow(run),
        table(options.model),
        num_slices(num_slices_of(options.model)),
        weight_bytes(
            static_cast<double>(tensor::size_of(tensor::precision_of(on.kind).of(tensor::Role::Weight)))),
        ops(options.model, on.kind, run.problem.recomputation,
            run.num_stages() > 1 ? WordGradient::Apart : WordGradient::OfOneStage),
        part_costs(ops, on),
        exchange(dataflow, table, part_costs, on, options.reduced_bytes),
        passes(ops, part_costs) {
    base::require(options.model.layers.size() == dataflow.layers().total(),
                  "the schedule must have the model's layers: {} instead of {}", dataflow.layers().total(),
                  options.model.layers.size());
    base::require(run.ranks.size() * num_slices <= cluster.num_devices(),
                  "cluster {} has {} devices, the run needs {}", cluster.name, cluster.num_devices(),
                  run.ranks.size() * num_slices);
    base::require(!run.problem.has_tensor_norms || options.update == UpdateRule::Lamb,
                  "a schedule that sums the norms of tensors is LAMB's: {}", run.name);
    find_first_micro_batches();
    find_shards();
    find_owners();
  }

  void set_work(const StepWork& work);
  ActionParts parts(Rank rank, const Action& action, Padding padding) const;
  ActionParts pass(Pass pass, const Action& action, Padding padding) const;
  ActionParts remembered(Rank rank, const Action& action) const;
  ActionParts computed(Rank rank, const Action& action) const;
  ActionParts second_order(Rank rank, const Action& action) const;
  ActionParts update(Rank rank, const Action& action) const;

  void find_first_micro_batches();
  void find_shards();
  void find_owners();
  Rank owner(StageId stage, LayerId layer, std::size_t map) const;
  double owned_share(StageId stage) const;
  Gradients gradients_of(const Action& action) const;
  std::size_t holder_index(Rank rank, StageId stage) const;
  double updated_elements(Rank rank, const Action& action) const;
  std::vector<FactorShape> own_shapes(Rank rank, const Action& action) const;
  std::vector<FactorShape> others_shapes(Rank rank, const Action& action) const;
  std::vector<FactorShape> shapes_of(const Action& action) const;
  std::vector<Op> precondition_ops(Rank rank, const Action& action) const;
  std::vector<Op> matrix_update_ops(const Action& action) const;
  ActionParts message(Rank rank, const Action& send) const;

  const Schedule& schedule;
  StepCostOptions options;
  const Cluster& cluster;
  schedule::Dataflow dataflow;
  describe::ParameterTable table;
  std::size_t num_slices;
  double weight_bytes;
  ActionOps ops;
  PartCosts part_costs;
  ExchangeCosts exchange;
  PassCosts passes;
  std::vector<bool> is_first;             ///< by stage and micro-batch: no gradient to add to
  std::vector<double> shard_elements;     ///< of each holder, where there are shards
  std::vector<std::vector<Rank>> owners;  ///< of each stage: its holders that have anything to do
  double tied_rows = 0;                   ///< of the word table that a step reads
  StepWork current;
  mutable std::unordered_map<Key, ActionParts, KeyHash> known;
};

void StepCosts::State::set_work(const StepWork& work) {
  base::require(work.micro_batches.size() == schedule.problem.num_micro_batches,
                "the schedule has {} micro-batches, the work is of {}", schedule.problem.num_micro_batches,
                work.micro_batches.size());
  passes.set_work(work);
  double tokens = 0;
  for (const MicroBatchWork& micro_batch : work.micro_batches) {
    if (micro_batch.rows > 0) tokens += static_cast<double>(micro_batch.work.tokens);
  }
  const auto& words = options.model.embedding.words;
  // Each slice has its part of the words, and its part of those that are read.
  tied_rows = expected_distinct_words(tokens, static_cast<double>(words.whole_rows())) *
              static_cast<double>(words.num_rows) / static_cast<double>(words.whole_rows());
  exchange.set_tied_rows(tied_rows);
  known.clear();
  current = work;
}

void StepCosts::State::find_first_micro_batches() {
  const std::size_t num_micro_batches = schedule.problem.num_micro_batches;
  is_first.assign(schedule.num_stages() * num_micro_batches, false);
  for (const schedule::RankProgram& rank : schedule.ranks) {
    std::vector<StageId> begun;
    for (const Action& action : rank.lane(schedule::Lane::Compute).actions()) {
      if (action.type != ActionType::Backward && action.type != ActionType::InputGradient) continue;
      if (std::ranges::find(begun, action.stage) != begun.end()) continue;
      begun.push_back(action.stage);
      is_first[action.stage.index() * num_micro_batches + action.micro_batch.index()] = true;
      if (begun.size() == rank.stages.size()) break;
    }
  }
}

void StepCosts::State::find_shards() {
  if (!dataflow.is_sharded(StageId{})) return;
  const describe::ParameterShard shard =
      memory::schedule_shard(table, schedule, dataflow.holders(StageId{}).front());
  shard_elements.assign(dataflow.holders(StageId{}).size(), 0);
  for (const describe::ParameterShard::Bucket& bucket : shard.buckets()) {
    for (std::size_t holder = 0; holder < bucket.counts.size(); ++holder)
      shard_elements[holder] += static_cast<double>(bucket.counts[holder]);
  }
}

void StepCosts::State::find_owners() {
  owners.resize(schedule.num_stages());
  for (std::size_t stage = 0; stage < owners.size(); ++stage) {
    for (const Rank rank : dataflow.holders(StageId::at(stage))) {
      if (!schedule.ranks[rank.index()].lane(schedule::Lane::Compute).actions().empty())
        owners[stage].push_back(rank);
    }
  }
}

/// Of an abridged schedule those that are written out own all maps, and have a part of the work on each.
Rank StepCosts::State::owner(StageId stage, LayerId layer, std::size_t map) const {
  const std::vector<Rank>& ranks = owners[stage.index()];
  const schedule::StageLayers& layers = dataflow.layers();
  return ranks[schedule::owner_index(layer.index() - layers.first(stage).index(), map, layers.count(stage),
                                     ranks.size())];
}

double StepCosts::State::owned_share(StageId stage) const {
  return static_cast<double>(owners[stage.index()].size()) /
         static_cast<double>(dataflow.holders(stage).size());
}

Gradients StepCosts::State::gradients_of(const Action& action) const {
  // What is in flight is added up when it is reduced.
  if (dataflow.scatters_rounds(action.stage)) return Gradients::Overwritten;
  const std::size_t place =
      action.stage.index() * schedule.problem.num_micro_batches + action.micro_batch.index();
  return is_first[place] ? Gradients::Overwritten : Gradients::AddedTo;
}

std::size_t StepCosts::State::holder_index(Rank rank, StageId stage) const {
  const std::span<const Rank> holders = dataflow.holders(stage);
  return static_cast<std::size_t>(std::ranges::lower_bound(holders, rank) - holders.begin());
}

double StepCosts::State::updated_elements(Rank rank, const Action& action) const {
  if (dataflow.is_sharded(action.stage)) return shard_elements[holder_index(rank, action.stage)];
  double elements = elements_in(table.elements_of_layers(action.first_layer, action.end_layer));
  // The last stage has a copy of the word table, unless the rank holds the first, too.
  const bool is_last = action.stage.index() + 1 == schedule.num_stages();
  const bool has_copy =
      is_last && table.tied() != nullptr && !std::ranges::binary_search(dataflow.holders(StageId{}), rank);
  if (has_copy) elements += static_cast<double>(table.tied()->num_elements());
  return elements;
}

std::vector<FactorShape> StepCosts::State::own_shapes(Rank rank, const Action& action) const {
  std::vector<FactorShape> own;
  for (LayerId layer = action.first_layer; layer < action.end_layer; ++layer.value) {
    const std::vector<FactorShape> shapes = factor_shapes(options.model.layers[layer.index()]);
    for (std::size_t map = 0; map < shapes.size(); ++map) {
      if (owner(action.stage, layer, map) == rank) own.push_back(shapes[map]);
    }
  }
  return own;
}

std::vector<FactorShape> StepCosts::State::others_shapes(Rank rank, const Action& action) const {
  std::vector<FactorShape> others;
  for (LayerId layer = action.first_layer; layer < action.end_layer; ++layer.value) {
    const std::vector<FactorShape> shapes = factor_shapes(options.model.layers[layer.index()]);
    for (std::size_t map = 0; map < shapes.size(); ++map) {
      if (owner(action.stage, layer, map) != rank) others.push_back(shapes[map]);
    }
  }
  return others;
}

std::vector<FactorShape> StepCosts::State::shapes_of(const Action& action) const {
  std::vector<FactorShape> all;
  for (LayerId layer = action.first_layer; layer < action.end_layer; ++layer.value)
    std::ranges::copy(factor_shapes(options.model.layers[layer.index()]), std::back_inserter(all));
  return all;
}

ActionParts StepCosts::State::message(Rank rank, const Action& send) const {
  const Rank peer = dataflow.peer(send);
  const ComputedWork& work = passes.work(send.micro_batch);
  if (peer.is_none() || work.is_empty()) return {};
  const double bytes = work.rows * static_cast<double>(options.model.width) * ops.activation_bytes();
  return {.device = {}, .link = {.bandwidth = exchange.message(rank, peer, bytes).bandwidth}};
}

ActionParts StepCosts::State::parts(Rank rank, const Action& action, Padding padding) const {
  switch (action.type) {
    case ActionType::Forward:
      return pass(Pass::Forward, action, padding);
    case ActionType::Backward:
      return pass(Pass::Backward, action, padding);
    case ActionType::InputGradient:
      return pass(Pass::InputGradient, action, padding);
    case ActionType::WeightGradient:
      return pass(Pass::WeightGradient, action, padding);
    case ActionType::Recompute:
      return pass(schedule.problem.recomputation == schedule::Recomputation::Mlp ? Pass::RecomputeMlp
                                                                                 : Pass::RecomputeFull,
                  action, padding);
    case ActionType::SendActivation:
    case ActionType::SendGradient:
      return message(rank, action);
    case ActionType::ReceiveActivation:
    case ActionType::ReceiveGradient:
    case ActionType::ExchangeData:
      return {};
    default:
      return remembered(rank, action);
  }
}

ActionParts StepCosts::State::pass(Pass pass, const Action& action, Padding padding) const {
  const Gradients gradients = pass == Pass::Forward ? Gradients::Overwritten : gradients_of(action);
  return passes.of(pass, action.micro_batch, action.first_layer, action.end_layer, gradients, padding);
}

/// Everything else is the same for many actions: what matters of them is what they are remembered by.
ActionParts StepCosts::State::remembered(Rank rank, const Action& action) const {
  Key key{.action = action};
  key.action.age = 0;
  key.action.piece = 0;
  key.action.micro_batch = MicroBatchId::none();
  if (schedule::is_curvature(action.type)) {
    key.other = passes.kind(action.micro_batch);
    key.action.stage = {};
    key.action.first_layer = LayerId::at(passes.first_alike(action.first_layer.index()));
    key.action.end_layer = LayerId::at(key.action.first_layer.index() + 1);
  } else if (schedule::counts_rounds(action.type)) {
    key.other = action.micro_batch.value == 0 ? 0 : 1;
  } else if (!schedule::traits_of(action.type).is_collective) {
    key.other = rank.index();
  }
  const auto [place, is_new] = known.try_emplace(key);
  if (is_new) place->second = computed(rank, action);
  return place->second;
}

ActionParts StepCosts::State::computed(Rank rank, const Action& action) const {
  switch (action.type) {
    case ActionType::CurvatureA:
    case ActionType::CurvatureB:
    case ActionType::Invert:
    case ActionType::InvertLayers:
    case ActionType::AccumulateFactor:
    case ActionType::InverseRoot:
    case ActionType::Precondition:
      return second_order(rank, action);
    case ActionType::SquareGradient:
    case ActionType::UpdateMoments:
    case ActionType::Update:
      return update(rank, action);
    default:
      return exchange.of(action);
  }
}

ActionParts StepCosts::State::second_order(Rank rank, const Action& action) const {
  const std::size_t layer = action.first_layer.index();
  const auto one_map = [&] {
    return std::vector<FactorShape>{factor_shapes(options.model.layers[layer])[action.factor]};
  };
  std::vector<Op> found;
  switch (action.type) {
    case ActionType::CurvatureA:
      found = curvature_a_ops(ops, layer, action.factor, passes.work(action.micro_batch));
      break;
    case ActionType::CurvatureB:
      found = curvature_b_ops(ops, layer, action.factor, passes.work(action.micro_batch));
      break;
    case ActionType::Invert:
      found = inversion_ops(one_map(), cluster.kind);
      break;
    case ActionType::InvertLayers:
      found = inversion_ops(own_shapes(rank, action), cluster.kind);
      break;
    case ActionType::AccumulateFactor:
      found = soap_factor_ops(own_shapes(rank, action), options.matrices.soap_limit);
      break;
    case ActionType::InverseRoot:
      found = soap_basis_ops(one_map(), options.matrices.soap_limit);
      break;
    default:  // Precondition
      found = precondition_ops(rank, action);
  }
  const bool is_divided = !schedule::is_curvature(action.type) && action.type != ActionType::Precondition;
  const double share = is_divided ? owned_share(action.stage) : 1;
  return part_costs.of(times(share / action.num_pieces, std::move(found)));
}

std::vector<Op> StepCosts::State::precondition_ops(Rank rank, const Action& action) const {
  const Preconditioner kind = schedule.problem.preconditioner;
  const std::vector<FactorShape> own = own_shapes(rank, action);
  const double share = owned_share(action.stage);
  if (kind == Preconditioner::Kfac) return times(share, kfac_precondition_ops(own));
  std::vector<Op> found =
      times(share, kind == Preconditioner::Muon ? muon_direction_ops(own, weight_bytes)
                                                : soap_direction_ops(own, options.matrices.soap_limit));
  std::ranges::copy(times(1 - share, others_moment_ops(kind, own)), std::back_inserter(found));
  std::ranges::copy(others_moment_ops(kind, others_shapes(rank, action)), std::back_inserter(found));
  return found;
}

std::vector<Op> StepCosts::State::matrix_update_ops(const Action& action) const {
  if (!options.matrices.replaces_update()) return {};
  const std::vector<FactorShape> shapes = shapes_of(action);
  return schedule.problem.preconditioner == options.matrices.kind
             ? matrix_weight_ops(shapes, weight_bytes)
             : whole_matrix_update_ops(options.matrices, shapes, weight_bytes);
}

ActionParts StepCosts::State::update(Rank rank, const Action& action) const {
  const double num_holders = static_cast<double>(dataflow.holders(action.stage).size());
  const bool is_sharded = dataflow.is_sharded(action.stage);
  const bool is_halved = dataflow.exchanges_tensor_norms(action.stage);
  if (action.type == ActionType::SquareGradient) {
    // Holders of the same gradient count a part each. The first slice counts what all have alike.
    const double elements =
        is_sharded
            ? updated_elements(rank, action)
            : elements_in(table.elements_of_layers(action.first_layer, action.end_layer)) / num_holders;
    std::vector<Op> found = {make_op(OpKind::SquareGradient, elements, 1, 1, kFloatBytes)};
    if (dataflow.reduces_tied_halves(rank)) {
      const double rows = tied_rows / (dataflow.shards_tied(rank) ? num_holders : 1);
      Op joined = make_op(OpKind::Gather, rows, static_cast<double>(options.model.width), 1, kFloatBytes);
      joined.bytes *= 1.5;  // what is added to is read
      found.push_back(joined);
    }
    return part_costs.of(found);
  }
  const UpdatePart part = !is_halved                                 ? UpdatePart::All
                          : action.type == ActionType::UpdateMoments ? UpdatePart::Moments
                                                                     : UpdatePart::Weights;
  double elements = updated_elements(rank, action);
  if (options.matrices.replaces_update()) elements -= matrix_elements(shapes_of(action));
  std::vector<Op> found = matrix_update_ops(action);
  found.push_back(update_op(kind_of(options.update), part, elements, weight_bytes));
  ActionParts parts = part_costs.of(found);
  if (action.type == ActionType::Update && schedule.problem.has_tensor_norms && num_slices > 1)
    parts.link +=
        part_costs.sum_over_slices(static_cast<double>(table.parameters().size()) * 2 * kDoubleBytes);
  return parts;
}

StepCosts::StepCosts(const Schedule& schedule, StepCostOptions options, const StepWork& work,
                     const Cluster& cluster)
    : state_(std::make_unique<State>(schedule, std::move(options), cluster)) {
  set_work(work);
}

StepCosts::~StepCosts() = default;

void StepCosts::set_work(const StepWork& work) {
  state_->set_work(work);
}

double StepCosts::seconds(Rank rank, const Action& action) const {
  return parts(rank, action).total();
}

double StepCosts::latency_seconds(Rank from, Rank to) const {
  return state_->exchange.message(from, to, 0).latency;
}

ActionParts StepCosts::parts(Rank rank, const Action& action) const {
  return state_->parts(rank, action, Padding::Counted);
}

std::vector<Op> StepCosts::ops() const {
  std::vector<Op> found;
  State anew(state_->schedule, state_->options, state_->cluster);  // which remembers nothing yet
  anew.part_costs.note_in(&found);
  anew.set_work(state_->current);
  for (std::size_t rank = 0; rank < anew.schedule.ranks.size(); ++rank) {
    for (const schedule::LaneProgram& lane : anew.schedule.ranks[rank].lanes) {
      for (const Action& action : lane.actions()) anew.parts(Rank::at(rank), action, Padding::Counted);
    }
  }
  return found;
}

ActionParts StepCosts::parts_without_padding(Rank rank, const Action& action) const {
  return state_->parts(rank, action, Padding::LeftOut);
}

}  // namespace plenum::plan
