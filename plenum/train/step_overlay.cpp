#include "plenum/train/step_overlay.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "plenum/io/file.h"
#include "plenum/schedule/simulate/replay.h"
#include "plenum/schedule/simulate/timeline_of.h"
#include "plenum/trace/overlay.h"
#include "plenum/train/step_timeline.h"

namespace plenum::train {

StepOverlay::StepOverlay(const schedule::Schedule& schedule, std::uint64_t drawn_step)
    : schedule_(schedule), dataflow_(schedule), drawn_step_(drawn_step), costs_(schedule) {}

trace::Timeline StepOverlay::timeline(const MeasuredStep& step, const std::vector<schedule::RankTimes>& times,
                                      std::string title) const {
  trace::Timeline timeline =
      schedule::timeline_of(schedule_, times, std::move(title), schedule::ActionLabels::Words);
  keep_step(timeline, step.cycle_step);
  remove_empty_micro_batches(timeline, step.is_empty);
  return timeline;
}

void StepOverlay::add(std::uint64_t step, const MeasuredStep& measured) {
  if (step < drawn_step_) return costs_.add(measured.times, measured.is_empty);
  costs_.expect_empty(measured.is_empty);
  const schedule::ReplayResult replayed = schedule::replay(schedule_, dataflow_, costs_, 1);
  Drawn both{.predicted = timeline(measured, replayed.times, "predicted"),
             .measured = timeline(measured, measured.times, "measured")};
  const double predicted_seconds = trace::mean_step_seconds(both.predicted);
  const double measured_seconds = trace::mean_step_seconds(both.measured);
  errors_.push_back(std::abs(measured_seconds - predicted_seconds) / measured_seconds);
  if (step == drawn_step_) drawn_ = std::move(both);
}

double StepOverlay::mean_error() const {
  if (errors_.empty()) return 0;
  return std::accumulate(errors_.begin(), errors_.end(), 0.0) / static_cast<double>(errors_.size());
}

void write_overlay(const std::string& path, const StepOverlay::Drawn& drawn, const std::string& title) {
  const trace::Overlay overlay = trace::lay_over(drawn.predicted, drawn.measured);
  io::write_file(path, path.ends_with(".svg") ? trace::overlay_svg(overlay, title)
                                              : trace::overlay_json(overlay, title));
}

}  // namespace plenum::train
