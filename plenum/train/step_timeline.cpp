#include "plenum/train/step_timeline.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "plenum/schedule/simulate/timeline_of.h"

namespace plenum::train {

void remove_spans(trace::Timeline& timeline, base::FunctionRef<bool(const trace::Span&)> is_removed) {
  constexpr std::uint32_t kRemoved = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> places(timeline.spans.size(), kRemoved);
  std::vector<trace::Span> kept;
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    if (is_removed(timeline.spans[i])) continue;
    places[i] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(timeline.spans[i]);
  }
  timeline.spans = std::move(kept);
  for (trace::Flow& flow : timeline.flows) flow = {places[flow.from], places[flow.to]};
  std::erase_if(timeline.flows,
                [](const trace::Flow& flow) { return flow.from == kRemoved || flow.to == kRemoved; });
}

void remove_empty_micro_batches(trace::Timeline& timeline, const std::vector<bool>& is_empty) {
  remove_spans(timeline, [&](const trace::Span& span) {
    return span.micro_batch >= 0 && is_empty[static_cast<std::size_t>(span.micro_batch)];
  });
}

void keep_step(trace::Timeline& timeline, std::size_t cycle_step) {
  remove_spans(timeline, [&](const trace::Span& span) { return span.step != cycle_step; });
  timeline.begin_seconds = timeline.step_begin_seconds[cycle_step];
  timeline.end_seconds = timeline.begin_seconds;
  for (trace::Span& span : timeline.spans) {
    timeline.end_seconds = std::max(timeline.end_seconds, span.end_seconds);
    span.step = 0;
  }
  timeline.step_begin_seconds = {timeline.begin_seconds};
}

trace::Timeline timeline_of_step(const schedule::Schedule& schedule, const MeasuredStep& step,
                                 std::string title) {
  trace::Timeline timeline =
      schedule::timeline_of(schedule, step.times, std::move(title), schedule::ActionLabels::Words);
  keep_step(timeline, step.cycle_step);
  remove_empty_micro_batches(timeline, step.is_empty);
  add_wait_for_data(timeline, step.waited_seconds);
  return timeline;
}

void add_wait_for_data(trace::Timeline& timeline, double seconds) {
  if (timeline.tracks.empty()) return;
  const std::uint32_t process = timeline.tracks.front().process;
  const auto next_process = std::find_if(timeline.tracks.begin(), timeline.tracks.end(),
                                         [&](const trace::Track& track) { return track.process != process; });
  const auto track = static_cast<std::uint32_t>(next_process - timeline.tracks.begin());
  timeline.tracks.insert(next_process, {process, "loader"});
  for (trace::Span& span : timeline.spans) span.track += span.track >= track ? 1 : 0;
  const auto later = std::find_if(timeline.spans.begin(), timeline.spans.end(),
                                  [&](const trace::Span& span) { return span.track > track; });
  const auto place = static_cast<std::uint32_t>(later - timeline.spans.begin());
  timeline.spans.insert(later, {.start_seconds = timeline.begin_seconds - seconds,
                                .end_seconds = timeline.begin_seconds,
                                .track = track,
                                .label = static_cast<std::uint32_t>(timeline.labels.size())});
  timeline.labels.emplace_back("waiting for data");
  if (!timeline.explanations.empty()) timeline.explanations.emplace_back("");
  for (trace::Flow& flow : timeline.flows) {
    flow.from += flow.from >= place ? 1 : 0;
    flow.to += flow.to >= place ? 1 : 0;
  }
  timeline.begin_seconds -= seconds;
}

}  // namespace plenum::train
