#include "plenum/train/step_record.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace plenum::train {
namespace {

using nlohmann::ordered_json;

constexpr std::ptrdiff_t kMostSpans = 20'000;

/// The tracks of so many whole ranks as have a number of spans that can be looked at; at least one rank's.
std::size_t num_kept_tracks(const trace::Timeline& timeline) {
  std::size_t kept = timeline.tracks.size();
  const auto num_spans = [&](std::size_t num_tracks) {  // they lie sorted by track
    return std::ranges::lower_bound(timeline.spans, num_tracks, {}, &trace::Span::track) -
           timeline.spans.begin();
  };
  while (num_spans(kept) > kMostSpans) {
    const std::uint32_t last = timeline.tracks[kept - 1].process;
    if (last == timeline.tracks.front().process) break;
    while (timeline.tracks[kept - 1].process == last) --kept;
  }
  return kept;
}

/// To the nanosecond, which keeps files short.
double rounded(double seconds) {
  return std::round(seconds * 1e9) / 1e9;
}

/// [track, start, end, category, label, micro-batch], in seconds from the step's beginning.
ordered_json spans_json(const trace::Timeline& timeline, std::size_t num_tracks) {
  ordered_json spans = ordered_json::array();
  for (const trace::Span& span : timeline.spans) {
    if (span.track >= num_tracks) continue;
    spans.push_back({span.track, rounded(span.start_seconds - timeline.begin_seconds),
                     rounded(span.end_seconds - timeline.begin_seconds), trace::category_name(span.category),
                     timeline.labels[span.label], span.micro_batch});
  }
  return spans;
}

ordered_json timeline_json(const trace::Timeline& timeline, std::size_t num_tracks) {
  return {{"step_seconds", trace::mean_step_seconds(timeline)},
          {"length_seconds", timeline.end_seconds - timeline.begin_seconds},
          {"spans", spans_json(timeline, num_tracks)}};
}

}  // namespace

ordered_json breakdown_json(const plan::StepBreakdown& breakdown) {
  return {{"arithmetic", breakdown.arithmetic},
          {"memory", breakdown.memory},
          {"launch", breakdown.launch},
          {"communication_latency", breakdown.communication_latency},
          {"communication_bandwidth", breakdown.communication_bandwidth},
          {"waiting", breakdown.waiting},
          {"bubbles", breakdown.bubbles},
          {"padding", breakdown.padding},
          {"optimizer", breakdown.optimizer}};
}

std::string step_record_json(const StepRecord& record) {
  const std::size_t num_tracks = num_kept_tracks(record.measured);
  ordered_json tracks = ordered_json::array();
  for (std::size_t i = 0; i < num_tracks; ++i) {
    const trace::Track& track = record.measured.tracks[i];
    tracks.push_back({{"rank", track.process}, {"lane", track.name}});
  }
  std::size_t num_ranks = 0;
  for (const trace::Track& track : record.measured.tracks)
    num_ranks = std::max<std::size_t>(num_ranks, track.process + 1);
  ordered_json breakdown = ordered_json::array();
  for (const plan::StepBreakdown& rank : record.breakdown) breakdown.push_back(breakdown_json(rank));
  const ordered_json object = {
      {"format", "plenum-step"},
      {"version", 1},
      {"step", record.step},
      {"schedule", record.schedule},
      {"prediction", record.source == StepRecord::Source::Machine ? "machine" : "earlier steps"},
      {"ranks", num_ranks},
      {"waited_seconds", record.waited_seconds},
      {"tracks", tracks},
      {"predicted", timeline_json(record.predicted, num_tracks)},
      {"measured", timeline_json(record.measured, num_tracks)},
      {"breakdown", breakdown}};
  return object.dump() + "\n";
}

}  // namespace plenum::train
