#include "plenum/train/step_check.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plenum/plan/step_breakdown.h"
#include "plenum/schedule/simulate/timeline_of.h"
#include "plenum/train/step_timeline.h"

namespace plenum::train {

void StepCheck::add(std::uint64_t step, const MeasuredStep& measured, double seconds) {
  predicted_ = prediction_.simulate(step);
  of_steps_.predicted += predicted_.step_seconds;
  of_steps_.measured += seconds;
  ++num_compared_;
  for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
    for (std::size_t lane = 0; lane < schedule::kNumLanes; ++lane) {
      const schedule::LaneProgram& program = schedule_.ranks[rank].lanes[lane];
      for (std::size_t i = program.step_begin(measured.cycle_step); i < program.step_end(measured.cycle_step);
           ++i) {
        Seconds& sums = of_actions_[static_cast<std::size_t>(program.actions()[i].type)];
        const schedule::ActionTime& expected = predicted_.replay.times[rank][lane][i];
        const schedule::ActionTime& taken = measured.times[rank][lane][i];
        sums.predicted += expected.end - expected.start;
        sums.measured += taken.end - taken.start;
      }
    }
  }
}

StepRecord StepCheck::record(std::uint64_t step, const MeasuredStep& measured) const {
  const auto timeline = [&](const std::vector<schedule::RankTimes>& times, std::string title) {
    trace::Timeline timeline =
        schedule::timeline_of(schedule_, times, std::move(title), schedule::ActionLabels::Words);
    keep_step(timeline, measured.cycle_step);
    remove_empty_micro_batches(timeline, measured.is_empty);
    return timeline;
  };
  return {.step = step,
          .schedule = schedule_.name,
          .source = StepRecord::Source::Machine,
          .predicted = timeline(predicted_.replay.times, "predicted"),
          .measured = timeline(measured.times, "measured"),
          .breakdown = plan::rank_breakdowns(schedule_, prediction_.costs(), predicted_),
          .waited_seconds = measured.waited_seconds};
}

std::optional<std::string> StepCheck::surprise() const {
  constexpr double kNoticed = 0.2;
  const double off = of_steps_.measured / of_steps_.predicted - 1;
  if (num_compared_ == 0 || std::abs(off) <= kNoticed) return std::nullopt;
  const auto distance = [](const Seconds& sums) { return std::abs(sums.measured - sums.predicted); };
  const auto worst = std::ranges::max_element(of_actions_, {}, distance);
  const auto type = static_cast<schedule::ActionType>(worst - of_actions_.begin());
  const auto count = static_cast<double>(num_compared_);
  const auto ranks = static_cast<double>(schedule_.ranks.size());
  return fmt::format(
      "a step takes {:.1f} ms in place of the {:.1f} ms that were predicted ({:+.0f} %); what differs most "
      "is "
      "{}: {:.1f} ms of a rank in place of {:.1f}",
      1e3 * of_steps_.measured / count, 1e3 * of_steps_.predicted / count, 100 * off,
      schedule::traits_of(type).name, 1e3 * worst->measured / count / ranks,
      1e3 * worst->predicted / count / ranks);
}

}  // namespace plenum::train
