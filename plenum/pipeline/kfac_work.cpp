#include "plenum/pipeline/kfac_work.h"

#include <numeric>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::pipeline {

using kernels::RowRange;
using optim::MapId;
using schedule::Action;
using schedule::ActionType;
using tensor::TensorView;

namespace {

MapId map_of(const Action& action) {
  return {.layer = action.first_layer.index(), .map = action.factor};
}

/// Appends rows, to the last range where they go on behind it.
void append(std::vector<RowRange>& rows, const RowRange& range) {
  if (range.begin == range.end) return;
  if (!rows.empty() && rows.back().end == range.begin) {
    rows.back().end = range.end;
  } else {
    rows.push_back(range);
  }
}

}  // namespace

std::vector<RowRange> rows_of_sequences(const batch::SequenceOffsets& sequences) {
  std::vector<RowRange> rows;
  for (std::size_t s = 0; s < sequences.num_sequences(); ++s) {
    const std::int64_t begin = sequences.starts[s];
    append(rows, {begin, begin + sequences.lengths[s]});
  }
  return rows;
}

std::vector<RowRange> rows_of_labels(const batch::MicroBatch& micro_batch,
                                     const model::MicroBatchViews& views, std::size_t num_objectives) {
  std::vector<RowRange> rows;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < num_objectives; ++i) {
    append(rows, {begin, begin + std::ssize(micro_batch.objective(i).rows)});
    begin += views.objectives[i].num_labels();
  }
  return rows;
}

KfacWork::KfacWork(const optim::KfacOptions& options, const schedule::Schedule& schedule, schedule::Rank rank,
                   const describe::ModelDescription& model, const memory::KfacMemory& memory,
                   const model::BertGradients& gradients, std::optional<tensor::Stream> queue)
    : model_(model),
      gradients_(gradients),
      wire_{.memory = memory.wire, .queue = std::move(queue)},
      gather_(schedule, rank, model, gradients, wire_),
      kfac_(options, model, schedule, memory),
      is_partial_(schedule.problem.has_partial_curvature),
      coverage_(schedule),
      steps_(schedule::Refreshes(schedule).max_age() + 2) {
  for (const describe::Layer& layer : model.layers) {
    reduced_a_.emplace_back(factor_shapes(layer).size());
    has_rows_.emplace_back(factor_shapes(layer).size());
  }
  const schedule::Dataflow dataflow(schedule);
  for (const schedule::StageId stage : schedule.ranks[rank.index()].stages) {
    const std::size_t end = dataflow.layers().end(stage).index();
    for (std::size_t layer = dataflow.layers().first(stage).index(); layer < end; ++layer)
      find_own_sums(dataflow, rank, stage, layer);
  }
}

void KfacWork::find_own_sums(const schedule::Dataflow& dataflow, schedule::Rank rank, schedule::StageId stage,
                             std::size_t layer) {
  const auto has_own = [&](std::span<const schedule::MicroBatchId> covered) {
    return std::ranges::any_of(covered, [&](schedule::MicroBatchId micro_batch) {
      return dataflow.runner(stage, micro_batch) == rank;
    });
  };
  const schedule::LayerId id = schedule::LayerId::at(layer);
  for (std::size_t map = 0; map < has_rows_[layer].size(); ++map) {
    const auto covered_a = coverage_.of(ActionType::CurvatureA, id, map);
    const std::size_t first = kfac_.first_of_input({layer, map});
    base::require(
        std::ranges::equal(covered_a, coverage_.of(ActionType::CurvatureA, id, first)),
        "maps {} and {} of layer {} have the same input: their KA must cover the same micro-batches", first,
        map, layer);
    has_rows_[layer][map] = {.a = has_own(covered_a),
                             .b = has_own(coverage_.of(ActionType::CurvatureB, id, map))};
  }
}

void KfacWork::begin_step(const batch::StepBatch& batch, std::size_t first_own, std::size_t num_own,
                          const std::function<const model::MicroBatchViews&(std::size_t)>& views_of) {
  StepRows& rows = steps_[batch.step % steps_.size()];
  rows.step = batch.step;
  rows.global = batch.global;
  if (is_partial_) rows.work = batch.work;
  rows.first_own = first_own;
  rows.micro_batches.clear();
  for (std::size_t id = first_own; id < first_own + num_own; ++id) {
    const batch::MicroBatch& micro_batch = batch.micro_batches[id - batch.first_micro_batch];
    const model::MicroBatchViews& views = views_of(id);
    rows.micro_batches.push_back({.num_rows = views.num_rows(),
                                  .num_read = batch::total(views.num_labels()),
                                  .tokens = rows_of_sequences(micro_batch.sequences()),
                                  .labels = rows_of_labels(micro_batch, views, model_.heads.size())});
  }
}

const KfacWork::StepRows& KfacWork::rows_of_step(std::uint64_t step) const {
  const StepRows& rows = steps_[step % steps_.size()];
  base::check(rows.step == step, "nothing is known any more of the rows of step {}", step);
  return rows;
}

bool KfacWork::reads_labels(const MapId& map) const {
  return map.layer + 1 == model_.layers.size() && model::is_behind_attention(map.map);
}

std::int64_t KfacWork::num_rows(const batch::Work& work, const MapId& map) const {
  if (!reads_labels(map)) return work.tokens;
  return std::accumulate(work.labels.begin(), work.labels.begin() + std::ssize(model_.heads),
                         std::int64_t{0});
}

std::int64_t KfacWork::num_covered_rows(const StepRows& step, const MapId& map, ActionType side) const {
  if (!is_partial_) return num_rows(step.global, map);
  std::int64_t rows = 0;
  for (const schedule::MicroBatchId covered : coverage_.of(side, schedule::LayerId::at(map.layer), map.map)) {
    base::check(covered.index() < step.work.size(), "a step says how large each of its micro-batches is: {}",
                step.work.size());
    rows += num_rows(step.work[covered.index()], map);
  }
  return rows;
}

void KfacWork::curvature(const ActionRun& run, const model::Pass& pass, const model::Activations& kept,
                         const model::Transients& transients) {
  const MapId map = map_of(run.action);
  const StepRows& step = rows_of_step(run.data_step());
  const RealRows& real = step.micro_batches[run.action.micro_batch.index() - step.first_own];
  const bool is_last = map.layer + 1 == model_.layers.size();
  const describe::LayerRows rows{.attended = real.num_rows,
                                 .behind = is_last ? real.num_read : real.num_rows,
                                 .read = is_last ? real.num_read : 0};
  // A micro-batch of which no head reads anything has no gradient: it counts in A alone.
  const bool is_error = run.action.type == ActionType::CurvatureB;
  optim::CurvatureRows added{.x_TW = {},
                             .first_column = 0,
                             .rows = reads_labels(map) ? real.labels : real.tokens,
                             .micro_batch = run.action.micro_batch.index(),
                             .step = run.data_step()};
  if (is_error && real.labels.empty()) added.rows = {};
  if (!added.rows.empty()) {
    const model::MapColumns columns =
        is_error ? model::map_error(map.layer, map.map, kept, rows)
                 : model::map_input(pass, map.layer, map.map, kept, transients, rows);
    added.x_TW = columns.x_TW;
    added.first_column = columns.first_column;
  }
  if (is_error) {
    kfac_.add_error(pass.stream, map, added);
  } else {
    kfac_.add_input(pass.stream, map, added);
  }
}

optim::Inversion KfacWork::inversion_of(const ActionRun& run, const MapId& map) const {
  const StepRows& step = rows_of_step(run.data_step());
  return {map,
          {.piece = run.action.piece,
           .num_pieces = run.action.num_pieces,
           .statistics_step = run.data_step(),
           .step = run.step,
           .num_rows = num_rows(step.global, map),
           .num_rows_a = num_covered_rows(step, map, ActionType::CurvatureA),
           .num_rows_b = num_covered_rows(step, map, ActionType::CurvatureB)}};
}

template <typename Visit>
void KfacWork::for_each_own_map(const Action& action, Visit visit) const {
  for (std::size_t map = 0; map < reduced_a_[action.first_layer.index()].size(); ++map) {
    for (std::size_t layer = action.end_layer.index(); layer-- > action.first_layer.index();) {
      if (kfac_.owns({layer, map})) visit(MapId{layer, map});
    }
  }
}

void KfacWork::invert(const ActionRun& run, const tensor::Stream& stream) {
  kfac_.invert(stream, inversion_of(run, map_of(run.action)));
}

void KfacWork::invert_layers(const ActionRun& run, const tensor::Stream& stream) {
  std::vector<optim::Inversion> inversions;
  for_each_own_map(run.action, [&](const MapId& map) { inversions.push_back(inversion_of(run, map)); });
  kfac_.invert_whole(stream, inversions);
}

void KfacWork::precondition(const ActionRun& run, const tensor::Stream& stream) const {
  std::vector<optim::MapGradient> gradients;
  for_each_own_map(run.action, [&](const MapId& map) {
    gradients.push_back({map, model::map_weight_gradient(gradients_.layers[map.layer], map.map)});
  });
  kfac_.precondition(stream, gradients);
}

void KfacWork::settle(std::uint64_t step, const tensor::Stream& stream, const TensorView& scalars_C) {
  kfac_.settle(stream, step, scalars_C);
}

std::vector<KfacWork::OwnSum> KfacWork::sums_to_reduce(const ActionRun& run) const {
  const MapId map = map_of(run.action);
  const HasRows& has_rows = has_rows_[map.layer][map.map];
  std::vector<OwnSum> sums = {{kfac_.sum_b_EE(map, run.data_step()), has_rows.b}};
  if (brings_a_) sums.push_back({kfac_.sum_a_DD(map, run.data_step()), has_rows.a});
  return sums;
}

comm::Elements KfacWork::to_reduce(const ActionRun& run) {
  const MapId map = map_of(run.action);
  // Maps with the same input come in the same order on all ranks, so the same one brings its A.
  std::optional<std::uint64_t>& reduced = reduced_a_[map.layer][kfac_.first_of_input(map)];
  brings_a_ = reduced != run.data_step();
  reduced = run.data_step();
  std::int64_t offset = 0;
  for (const OwnSum& own : sums_to_reduce(run)) {
    const TensorView part = wire_.part(offset, own.sum);
    if (own.has_rows) {
      wire_.copy(own.sum, part);
    } else {
      wire_.set_zero(part);  // the sum is still that of an earlier refresh
    }
    offset += own.sum.num_elements();
  }
  return comm::elements_of(wire_.memory.first_rows(offset).span<float>());
}

void KfacWork::communicated(const ActionRun& run) {
  if (run.action.type == ActionType::GatherPreconditioned) return gather_.communicated(run);
  std::int64_t offset = 0;
  for (const auto& [sum, has_rows] : sums_to_reduce(run)) {
    wire_.copy(wire_.part(offset, sum), sum);
    offset += sum.num_elements();
  }
}

}  // namespace plenum::pipeline
