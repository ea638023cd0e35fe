#include "plenum/trace/svg_drawing.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plenum/trace/process_rows.h"
#include "plenum/trace/svg_chart.h"
#include "plenum/trace/time_axis.h"

namespace plenum::trace {
namespace {

constexpr std::size_t kNotDrawn = std::numeric_limits<std::size_t>::max();

bool takes_time(std::span<const Span> spans) {
  return std::any_of(spans.begin(), spans.end(),
                     [](const Span& span) { return span.end_seconds > span.start_seconds; });
}

/// Where a track is drawn.
struct Place {
  std::size_t row = kNotDrawn;
  std::size_t strip = 0;
};

class SvgDrawing {
 public:
  SvgDrawing(const Timeline& timeline, const SvgDrawingOptions& options)
      : timeline_(timeline),
        options_(options),
        processes_(process_rows(timeline)),
        places_(timeline.tracks.size()) {
    for (const ProcessRow& process : processes_) {
      for (std::size_t i = 1; i < process.tracks.size(); ++i)
        has_strips_ |= takes_time(process.tracks[i].spans);
    }
    has_strips_ &= options.tracks == SvgDrawingOptions::Tracks::All;
  }

  std::string draw() {
    chart_.title = timeline_.title;
    chart_.width = options_.width;
    chart_.length_seconds = timeline_.end_seconds - timeline_.begin_seconds;
    for (const double begin : timeline_.step_begin_seconds) {
      chart_.step_seconds.push_back(begin - timeline_.begin_seconds);
    }
    const std::size_t num_drawn = std::min(processes_.size(), options_.most_processes);
    for (std::size_t i = 0; i < num_drawn; ++i) add_row(processes_[i]);
    if (num_drawn < processes_.size()) {
      chart_.footnote = fmt::format("{} more ranks are not drawn", processes_.size() - num_drawn);
    }
    add_subtitle();
    add_arrows();
    return write_svg(chart_);
  }

 private:
  void add_row(const ProcessRow& process) {
    const std::span<const Span> spans = process.tracks.front().spans;
    const double busy = busy_seconds(spans, timeline_.begin_seconds, timeline_.end_seconds);
    SvgRow row{
        .label = fmt::format("rank {}", process.process),
        .detail = stages_text(stages_of(spans)),
        .note = chart_.length_seconds > 0 ? fmt::format("{:.1f} %", 100 * busy / chart_.length_seconds) : "",
        .timeline = &timeline_,
        .spans = spans};
    places_[process.tracks.front().track] = {chart_.rows.size(), 0};
    for (std::size_t i = 1; has_strips_ && i < process.tracks.size(); ++i) {
      places_[process.tracks[i].track] = {chart_.rows.size(), row.strips.size()};
      row.strips.push_back({timeline_.tracks[process.tracks[i].track].name, process.tracks[i].spans});
    }
    chart_.rows.push_back(std::move(row));
  }

  void add_subtitle() {
    const std::size_t num_steps = std::max<std::size_t>(1, timeline_.step_begin_seconds.size());
    double busy = 0;
    for (const ProcessRow& process : processes_) {
      busy += busy_seconds(process.tracks.front().spans, timeline_.begin_seconds, timeline_.end_seconds);
    }
    const double time = chart_.length_seconds * static_cast<double>(processes_.size());
    chart_.subtitle =
        fmt::format("{} rank{}, {} step{} of {}, computing {:.1f} % of the time", processes_.size(),
                    processes_.size() == 1 ? "" : "s", num_steps, num_steps == 1 ? "" : "s",
                    format_duration(chart_.length_seconds / static_cast<double>(num_steps)),
                    time > 0 ? 100 * busy / time : 0.0);
  }

  void add_arrows() {
    if (!has_strips_ || timeline_.flows.size() > options_.most_arrows) return;
    for (const Flow& flow : timeline_.flows) {
      const Span& from = timeline_.spans[flow.from];
      const Span& to = timeline_.spans[flow.to];
      const Place from_place = places_[from.track];
      const Place to_place = places_[to.track];
      if (from_place.row == kNotDrawn || to_place.row == kNotDrawn) continue;
      chart_.arrows.push_back({.from_row = from_place.row,
                               .from_strip = from_place.strip,
                               .from_seconds = from.end_seconds - timeline_.begin_seconds,
                               .to_row = to_place.row,
                               .to_strip = to_place.strip,
                               .to_seconds = to.end_seconds - timeline_.begin_seconds});
    }
  }

  const Timeline& timeline_;
  const SvgDrawingOptions& options_;
  std::vector<ProcessRow> processes_;
  std::vector<Place> places_;  ///< of each track
  bool has_strips_ = false;
  SvgChart chart_;
};

}  // namespace

std::string stages_text(const std::vector<std::uint16_t>& stages) {
  if (stages.empty()) return "";
  if (stages.size() == 1) return fmt::format("stage {}", stages.front());
  if (stages.size() > 2 && stages.back() - stages.front() + 1u == stages.size()) {
    return fmt::format("stages {}-{}", stages.front(), stages.back());
  }
  constexpr std::size_t kMostNamed = 4;
  std::string text = "stages ";
  for (std::size_t i = 0; i < std::min(stages.size(), kMostNamed); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", stages[i]);
  }
  return stages.size() > kMostNamed ? text + ", …" : text;
}

std::string draw_svg(const Timeline& timeline, const SvgDrawingOptions& options) {
  return SvgDrawing(timeline, options).draw();
}

}  // namespace plenum::trace
