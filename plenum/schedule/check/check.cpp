#include "plenum/schedule/check/check.h"

#include <algorithm>
#include <tuple>

#include "plenum/base/check.h"
#include "plenum/schedule/check/activation_peaks.h"
#include "plenum/schedule/check/check_rules.h"

namespace plenum::schedule {
namespace {

class NoCosts final : public CostModel {
 public:
  double seconds(Rank, const Action&) const override { return 0; }
  double latency_seconds(Rank, Rank) const override { return 0; }
};

void sort_by_occurrence(const Schedule& schedule, std::vector<Finding>& findings) {
  const auto key = [&schedule](const Finding& finding) {
    const ActionPlace& place = finding.place;
    const LaneProgram& lane = schedule.ranks[place.rank.index()].lane(place.lane);
    return std::tuple(place.step, place.position - lane.step_begin(place.step), place.rank, place.lane);
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&key](const Finding& a, const Finding& b) { return key(a) < key(b); });
}

}  // namespace

CheckResult check(const Schedule& schedule) {
  const Dataflow dataflow(schedule);
  RuleContext context{schedule, dataflow};
  find_misplaced(context);
  // The other rules ask the dataflow about actions that have a place in the schedule.
  if (context.findings.empty()) {
    find_duplicates(context);
    find_omissions(context);
    find_unmatched_messages(context);
    find_incomplete_groups(context);
  }
  if (context.findings.empty()) {
    explain_blocked(context,
                    replay(schedule, dataflow, NoCosts(), num_cycles_to_steady_state(dataflow)).blocked);
  }
  CheckResult result;
  result.peak_activation_layers = activation_peaks(dataflow, KeptFor::Backward);
  const bool has_curvature = schedule.problem.preconditioner == Preconditioner::Kfac;
  result.peak_kept_layers =
      has_curvature ? activation_peaks(dataflow, KeptFor::Curvature) : result.peak_activation_layers;
  sort_by_occurrence(schedule, context.findings);
  for (const Finding& finding : context.findings) {
    result.violations.push_back({describe_place(context, finding.place), finding.why});
  }
  return result;
}

void require_checked(const Schedule& schedule) {
  const std::vector<Violation> violations = check(schedule).violations;
  if (!violations.empty()) base::fail("{}: {}", violations.front().where, violations.front().why);
}

}  // namespace plenum::schedule
