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
constexpr std::size_t kPixelsPerStep = 300;
constexpr std::size_t kLeastWidth = 1200;
constexpr std::size_t kGreatestWidth = 4800;

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
    chart_.from_seconds = std::max(0.0, options_.from_seconds);
    chart_.to_seconds = std::min(options_.to_seconds, timeline_.end_seconds - timeline_.begin_seconds);
    std::size_t num_steps = 0;
    for (const double begin : timeline_.step_begin_seconds) {
      const double seconds = begin - timeline_.begin_seconds;
      num_steps += seconds >= chart_.from_seconds && seconds < chart_.to_seconds;
      chart_.step_seconds.push_back(seconds);
    }
    chart_.width =
        options_.width.value_or(std::clamp(num_steps * kPixelsPerStep, kLeastWidth, kGreatestWidth));
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
    const double length = chart_.to_seconds - chart_.from_seconds;
    SvgRow row{.label = fmt::format("rank {}", process.process),
               .detail = stages_text(stages_of(spans)),
               .note = length > 0 ? fmt::format("{:.1f} %", 100 * shown_busy_seconds(spans) / length) : "",
               .timeline = &timeline_,
               .spans = spans};
    places_[process.tracks.front().track] = {chart_.rows.size(), 0};
    for (std::size_t i = 1; has_strips_ && i < process.tracks.size(); ++i) {
      places_[process.tracks[i].track] = {chart_.rows.size(), row.strips.size()};
      row.strips.push_back({timeline_.tracks[process.tracks[i].track].name, process.tracks[i].spans});
    }
    chart_.rows.push_back(std::move(row));
  }

  double shown_busy_seconds(std::span<const Span> spans) const {
    return busy_seconds(spans, timeline_.begin_seconds + chart_.from_seconds,
                        timeline_.begin_seconds + chart_.to_seconds);
  }

  void add_subtitle() {
    const std::size_t num_steps = std::max<std::size_t>(1, timeline_.step_begin_seconds.size());
    double busy = 0;
    for (const ProcessRow& process : processes_) busy += shown_busy_seconds(process.tracks.front().spans);
    const double time = (chart_.to_seconds - chart_.from_seconds) * static_cast<double>(processes_.size());
    const double length = timeline_.end_seconds - timeline_.begin_seconds;
    chart_.subtitle =
        fmt::format("{} rank{}, {} step{} of {}, computing {:.1f} % of the time", processes_.size(),
                    processes_.size() == 1 ? "" : "s", num_steps, num_steps == 1 ? "" : "s",
                    format_duration(mean_step_seconds(timeline_)), time > 0 ? 100 * busy / time : 0.0);
    if (chart_.from_seconds > 0 || chart_.to_seconds < length) {
      chart_.subtitle += fmt::format(", shown from {} to {}", format_duration(chart_.from_seconds),
                                     format_duration(chart_.to_seconds));
    }
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
