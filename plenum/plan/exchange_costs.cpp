#include "plenum/plan/exchange_costs.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/batch/label_counts.h"
#include "plenum/memory/kfac_memory.h"
#include "plenum/plan/element_bytes.h"
#include "plenum/plan/make_op.h"
#include "plenum/tensor/dtype.h"

namespace plenum::plan {

using describe::FactorShape;
using schedule::Action;
using schedule::ActionType;
using schedule::LayerId;
using schedule::Rank;

namespace {

/// Scalars of a step that ranks agree on: losses, the square of the norm, and four wishes.
constexpr double kNumAgreed = static_cast<double>(batch::kMostObjectives) + 5;

/// Numbers that are copied to another place or type, or added to others.
Op pass_over(double num_elements, double bytes_of_element) {
  Op op = make_op(OpKind::Gather, num_elements, 1, 1, 1);
  op.bytes = num_elements * bytes_of_element;
  return op;
}

}  // namespace

ExchangeCosts::ExchangeCosts(const schedule::Dataflow& dataflow, const describe::ParameterTable& table,
                             const PartCosts& part_costs, const Cluster& cluster, std::size_t reduced_bytes)
    : dataflow_(dataflow),
      table_(table),
      part_costs_(part_costs),
      cluster_(cluster),
      norms_(table),
      num_slices_(table.model().tensor_parallel.size),
      reduced_bytes_(static_cast<double>(reduced_bytes)),
      weight_bytes_(
          static_cast<double>(tensor::size_of(tensor::precision_of(cluster.kind).of(tensor::Role::Weight)))) {
}

const Link& ExchangeCosts::link_between(Rank first, Rank last) const {
  const bool is_one_node =
      cluster_.are_on_one_node(first.index() * num_slices_, last.index() * num_slices_ + num_slices_ - 1);
  return is_one_node ? cluster_.within_node : cluster_.between_nodes;
}

LinkSeconds ExchangeCosts::message(Rank one, Rank other, double bytes) const {
  return message_seconds(link_between(std::min(one, other), std::max(one, other)), bytes);
}

/// Parameters that are reduced and gathered with the layers: the tied table among them only where that is not
/// done by itself.
double ExchangeCosts::elements_of(const Action& action) const {
  auto range = table_.elements_of_layers(action.first_layer, action.end_layer);
  const schedule::Schedule& schedule = dataflow_.schedule();
  const bool is_apart = schedule.problem.has_tied_halves || schedule.num_stages() > 1;
  if (is_apart && table_.tied() != nullptr) range.end = std::min(range.end, table_.tied()->begin);
  return static_cast<double>(range.end - range.begin);
}

ActionParts ExchangeCosts::of(const Action& collective) const {
  if (collective.type == ActionType::Agree) return agree();
  const std::span<const Rank> group = dataflow_.group(collective);
  if (group.size() < 2) return {};
  const Link& link = link_of(group);
  switch (collective.type) {
    case ActionType::ReduceGradient:
    case ActionType::ReduceScatterGradient:
    case ActionType::ReduceScatterRound:
      return reduction(collective, link, group.size());
    case ActionType::GatherParameters:
    case ActionType::GatherForward:
    case ActionType::GatherBackward:
      return weights(collective, link, group.size());
    case ActionType::ReduceCurvature:
      return curvature(collective, link, group.size());
    case ActionType::GatherPreconditioned:
      return preconditioned(collective, link, group.size());
    case ActionType::ReduceTensorNorms: {
      const double bytes = static_cast<double>(table_.parameters().size()) * 2 * kDoubleBytes;
      return {.device = {}, .link = all_reduce_seconds(link, bytes, group.size())};
    }
    default:
      base::check(schedule::is_of_tied(collective.type), "nobody says what an action of this type costs: {}",
                  schedule::traits_of(collective.type).name);
      return tied(collective);
  }
}

ActionParts ExchangeCosts::agree() const {
  const std::size_t num_places = dataflow_.schedule().ranks.size();
  const std::size_t num_ranks = num_places * num_slices_;
  const double bytes = static_cast<double>(num_ranks) * kNumAgreed * kDoubleBytes;
  const Link& link = link_between({}, Rank::at(num_places - 1));
  return {.device = {.launch = cluster_.step_overhead_seconds},
          .link = agreement_seconds(link, bytes, num_ranks, cluster_.kind)};
}

ActionParts ExchangeCosts::reduction(const Action& action, const Link& link, std::size_t num_ranks) const {
  const double elements = elements_of(action);
  const double own = elements / static_cast<double>(num_ranks);
  if (action.type == ActionType::ReduceScatterRound) {
    // In fp32; a rank's part is copied from the first round, and added from the others.
    const double num_passes = action.micro_batch.value == 0 ? 2 : 3;
    return {.device = part_costs_.of({pass_over(own, num_passes * kFloatBytes)}).device,
            .link = gather_seconds(link, elements * kFloatBytes, num_ranks)};
  }
  const bool is_scatter = action.type == ActionType::ReduceScatterGradient;
  const double bytes = elements * reduced_bytes_;
  ActionParts parts{.device = {},
                    .link = is_scatter ? gather_seconds(link, bytes, num_ranks)
                                       : all_reduce_seconds(link, bytes, num_ranks)};
  if (reduced_bytes_ == kFloatBytes) return parts;
  const double bytes_of_element = kFloatBytes + reduced_bytes_;
  parts.device = part_costs_
                     .of({pass_over(elements, bytes_of_element),
                          pass_over(is_scatter ? own : elements, bytes_of_element)})
                     .device;
  return parts;
}

ActionParts ExchangeCosts::weights(const Action& action, const Link& link, std::size_t num_ranks) const {
  const double elements = elements_of(action);
  ActionParts parts{.device = {}, .link = gather_seconds(link, elements * weight_bytes_, num_ranks)};
  if (weight_bytes_ == kFloatBytes) return parts;
  const double own = elements / static_cast<double>(num_ranks);
  parts.device = part_costs_.of({pass_over(own, kFloatBytes + weight_bytes_)}).device;
  // What norms read is gathered as it is kept, too, once in a step.
  const bool is_first_of_step = action.type == ActionType::GatherParameters ||
                                (action.type == ActionType::GatherForward && action.micro_batch.value == 0);
  if (!is_first_of_step) return parts;
  const auto range = table_.elements_of_layers(action.first_layer, action.end_layer);
  parts.link +=
      gather_seconds(link, static_cast<double>(norms_.count_within(range)) * kFloatBytes, num_ranks);
  return parts;
}

ActionParts ExchangeCosts::curvature(const Action& action, const Link& link, std::size_t num_ranks) const {
  const describe::Layer& layer = table_.model().layers[action.first_layer.index()];
  const FactorShape shape = factor_shapes(layer)[action.factor];
  auto elements = static_cast<double>(shape.out_width * shape.out_width);
  // Maps with the same input share its moment, which the first of them brings.
  if (memory::first_map_of_input(layer, action.factor) == action.factor)
    elements += static_cast<double>(shape.in_width * shape.in_width);
  return {.device = part_costs_.of({pass_over(elements, 4 * kFloatBytes)}).device,
          .link = all_reduce_seconds(link, elements * kFloatBytes, num_ranks)};
}

ActionParts ExchangeCosts::preconditioned(const Action& action, const Link& link,
                                          std::size_t num_ranks) const {
  double elements = 0;
  for (LayerId layer = action.first_layer; layer < action.end_layer; ++layer.value) {
    for (const FactorShape& shape : factor_shapes(table_.model().layers[layer.index()]))
      elements += static_cast<double>(shape.in_width * shape.out_width);
  }
  return {.device = part_costs_.of({pass_over(elements, 2 * kFloatBytes)}).device,
          .link = gather_seconds(link, elements * kFloatBytes, num_ranks)};
}

ActionParts ExchangeCosts::tied(const Action& action) const {
  if (table_.tied() == nullptr) return {};
  const std::span<const Rank> group = dataflow_.group(action);
  const std::size_t num_ranks = group.size();
  const Link& link = link_of(group);
  const describe::Table& words = table_.model().embedding.words;
  const double table_bytes = static_cast<double>(table_.tied()->num_elements()) * kFloatBytes;
  switch (action.type) {
    case ActionType::GatherTiedRows: {
      constexpr double kBitsOfByte = 8;
      const double bytes = static_cast<double>(words.num_rows) / kBitsOfByte;
      return {.device = {}, .link = gather_seconds(link, bytes * static_cast<double>(num_ranks), num_ranks)};
    }
    case ActionType::ReduceTied: {
      const double rows_bytes = tied_rows_ * static_cast<double>(words.width) * kFloatBytes;
      const bool is_half = dataflow_.schedule().problem.has_tied_halves;
      return {.device = {}, .link = all_reduce_seconds(link, is_half ? rows_bytes : table_bytes, num_ranks)};
    }
    case ActionType::ReduceTiedOutput:
      return {.device = {}, .link = all_reduce_seconds(link, table_bytes, num_ranks)};
    default:  // ReduceScatterTiedOutput, GatherTied
      return {.device = {}, .link = gather_seconds(link, table_bytes, num_ranks)};
  }
}

}  // namespace plenum::plan
