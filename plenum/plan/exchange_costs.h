#pragma once

#include <cstddef>
#include <span>

#include "plenum/describe/norm_elements.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/plan/cluster.h"
#include "plenum/plan/pass_costs.h"
#include "plenum/plan/step_costs.h"
#include "plenum/schedule/core/dataflow.h"

namespace plenum::plan {

/// What ranks of a schedule exchange, and what that costs: collectives and messages
/// (pipeline/parameter_exchange, pipeline/tied_rows, pipeline/stage_messages, pipeline/kfac_work), with what
/// each rank does to what it gives and gets, such as rounding to bfloat16.
class ExchangeCosts {
 public:
  /// Borrows all but the options.
  ExchangeCosts(const schedule::Dataflow& dataflow, const describe::ParameterTable& table,
                const PartCosts& part_costs, const Cluster& cluster, std::size_t reduced_bytes);

  /// How many rows of the tied word table the first layers read in a step.
  void set_tied_rows(double num_rows) { tied_rows_ = num_rows; }

  ActionParts of(const schedule::Action& collective) const;
  /// The time that a message between two ranks holds the wire, and how much later it arrives.
  LinkSeconds message(schedule::Rank one, schedule::Rank other, double bytes) const;

 private:
  /// The link of ranks of the schedule, with all their slices.
  const Link& link_between(schedule::Rank first, schedule::Rank last) const;
  const Link& link_of(std::span<const schedule::Rank> group) const {
    return link_between(group.front(), group.back());
  }
  double elements_of(const schedule::Action& action) const;

  ActionParts agree() const;
  ActionParts tied(const schedule::Action& action) const;
  ActionParts reduction(const schedule::Action& action, const Link& link, std::size_t num_ranks) const;
  ActionParts weights(const schedule::Action& action, const Link& link, std::size_t num_ranks) const;
  ActionParts curvature(const schedule::Action& action, const Link& link, std::size_t num_ranks) const;
  ActionParts preconditioned(const schedule::Action& action, const Link& link, std::size_t num_ranks) const;

  const schedule::Dataflow& dataflow_;
  const describe::ParameterTable& table_;
  const PartCosts& part_costs_;
  const Cluster& cluster_;
  describe::NormElements norms_;
  std::size_t num_slices_;
  double reduced_bytes_;
  double weight_bytes_;
  double tied_rows_ = 0;
};

}  // namespace plenum::plan
