#include "plenum/report/step_chart.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "plenum/report/axis.h"
#include "plenum/report/bar_chart.h"
#include "plenum/report/html.h"
#include "plenum/trace/svg_text.h"
#include "plenum/trace/time_axis.h"

namespace plenum::report {
namespace {

using trace::Category;

/// Spans with a tooltip each; of more, those of a kind are drawn as one.
constexpr std::size_t kMostTooltips = 3000;
constexpr std::size_t kMostRanks = 32;
constexpr double kComputeHeight = 70;  ///< of a row's 100; strips have the rest
constexpr double kStripsTop = 76;

/// The tracks of a rank: the first one is its computation.
struct RankTracks {
  std::uint32_t rank = 0;
  std::vector<std::uint32_t> tracks;
};

std::vector<RankTracks> ranks_of(const StepTimes& times) {
  std::vector<RankTracks> ranks;
  for (std::uint32_t i = 0; i < times.tracks.size(); ++i) {
    if (ranks.empty() || ranks.back().rank != times.tracks[i].rank)
      ranks.push_back({times.tracks[i].rank, {}});
    ranks.back().tracks.push_back(i);
  }
  if (ranks.size() > kMostRanks) ranks.resize(kMostRanks);
  return ranks;
}

std::string tooltip(const StepSpan& span) {
  std::string text = fmt::format("{}: {}", span.label, trace::category_name(span.category));
  if (span.micro_batch >= 0) text += fmt::format(", micro-batch {}", span.micro_batch);
  return text + fmt::format(", {} from {}", trace::format_duration(span.end - span.begin),
                            trace::format_duration(std::max(0.0, span.begin)));
}

/// Where a track of a rank lies in its row.
struct Strip {
  double top = 0;
  double height = kComputeHeight;
};
Strip strip_of(const RankTracks& rank, std::uint32_t track) {
  if (rank.tracks.size() == 1) return {0, 100};
  const auto place = static_cast<std::size_t>(std::ranges::find(rank.tracks, track) - rank.tracks.begin());
  if (place == 0) return {};
  const double height = (100 - kStripsTop) / static_cast<double>(rank.tracks.size() - 1);
  return {kStripsTop + height * static_cast<double>(place - 1), 0.8 * height};
}

class TimelineWriter {
 public:
  explicit TimelineWriter(const StepTimes& times)
      : times_(times),
        ranks_(ranks_of(times)),
        unit_(trace::unit_for(std::max(times.predicted.length_seconds, times.measured.length_seconds))),
        length_(std::max({times.predicted.length_seconds, times.measured.length_seconds, 1e-9}) /
                unit_.seconds),
        has_tooltips_(times.measured.spans.size() + times.predicted.spans.size() <= kMostTooltips) {}

  std::string write() {
    add("<figure class=\"chart timeline\" data-length=\"{:.6g}\" data-unit=\"{}\">\n<figcaption><h3>Step {}, "
        "{}: predicted above measured</h3>{}</figcaption>\n",
        length_, unit_.name, times_.step, escape(times_.schedule), legend());
    add("<div class=\"rows\" role=\"img\" aria-label=\"{}\">\n", escape(description()));
    for (const RankTracks& rank : ranks_) {
      add_row(rank, times_.predicted, fmt::format("rank {}", rank.rank), "predicted");
      add_row(rank, times_.measured, "", "measured");
    }
    html_ += "</div>\n<div class=\"time-axis\" aria-hidden=\"true\"><div class=\"x-labels\">";
    const Axis axis{0, length_, Scale::Linear};
    for (const AxisTick& tick : ticks_of(axis, 6))
      add("<span style=\"left:{}%\">{}</span>", trace::coordinate(100 * axis.place(tick.value)), tick.label);
    add("</div><div class=\"x-name\">{}</div></div>\n", unit_.name);
    if (times_.num_ranks > ranks_.size())
      add("<p class=\"note\">{} more ranks are not drawn.</p>\n", times_.num_ranks - ranks_.size());
    html_ += "</figure>\n";
    return std::move(html_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(html_), format, std::forward<Args>(args)...);
  }

  std::string legend() const {
    std::array<bool, trace::kNumCategories> is_present{};
    for (const StepSpan& span : times_.measured.spans)
      is_present[static_cast<std::size_t>(span.category)] = true;
    std::string html = "<span class=\"legend\">";
    for (std::size_t i = 0; i < is_present.size(); ++i)
      if (is_present[i])
        html += fmt::format("<span class=\"key block {}\">{}</span>", color_of(static_cast<Category>(i)),
                            trace::category_name(static_cast<Category>(i)));
    return html + "</span>";
  }

  std::string description() const {
    return fmt::format("Timeline of {} ranks in step {}: {} predicted, {} measured", ranks_.size(),
                       times_.step, trace::format_duration(times_.predicted.step_seconds),
                       trace::format_duration(times_.measured.step_seconds));
  }

  void add_row(const RankTracks& rank, const StepTimeline& timeline, const std::string& label,
               const char* kind) {
    add("<div class=\"row {0}\"><span class=\"label\"><b>{1}</b><i>{0}</i></span><svg viewBox=\"0 0 {2} "
        "100\" "
        "preserveAspectRatio=\"none\">"
        "<rect class=\"lane\" width=\"{2}\" height=\"{3}\"/>",
        kind, label, trace::coordinate(length_), rank.tracks.size() == 1 ? 100 : kComputeHeight);
    std::map<Category, std::string> paths;
    for (const StepSpan& span : timeline.spans) {
      if (std::ranges::find(rank.tracks, span.track) == rank.tracks.end() || span.end <= span.begin) continue;
      const Strip strip = strip_of(rank, span.track);
      const double begin = std::max(0.0, span.begin) / unit_.seconds;
      const double width = span.end / unit_.seconds - begin;
      if (width <= 0) continue;
      if (has_tooltips_)
        add("<rect class=\"block {}\" x=\"{:.5g}\" y=\"{:.4g}\" width=\"{:.4g}\" "
            "height=\"{:.4g}\"><title>{}</title></rect>",
            color_of(span.category), begin, strip.top, width, strip.height, escape(tooltip(span)));
      else
        fmt::format_to(std::back_inserter(paths[span.category]), "M{:.5g} {:.4g}h{:.4g}v{:.4g}h-{:.4g}z",
                       begin, strip.top, width, strip.height, width);
    }
    for (const auto& [category, path] : paths)
      add("<path class=\"block {}\" d=\"{}\"/>", color_of(category), path);
    html_ += "</svg></div>\n";
  }

  const StepTimes& times_;
  const std::vector<RankTracks> ranks_;
  const trace::TimeUnit unit_;
  const double length_;  ///< in that unit
  const bool has_tooltips_;
  std::string html_;
};

/// Seconds of a rank's computation by category.
using SecondsByCategory = std::array<double, trace::kNumCategories>;

SecondsByCategory seconds_of(const StepTimeline& timeline, std::uint32_t track) {
  SecondsByCategory seconds{};
  for (const StepSpan& span : timeline.spans)
    if (span.track == track) seconds[static_cast<std::size_t>(span.category)] += span.end - span.begin;
  return seconds;
}

struct BreakdownName {
  const char* key;
  const char* name;
  const char* color;
};
/// As step.json calls the parts, and as the page does.
constexpr std::array<BreakdownName, 9> kBreakdownNames = {
    {{"arithmetic", "arithmetic of forward and backward", "c0"},
     {"memory", "memory traffic", "c4"},
     {"launch", "starting operations", "c7"},
     {"optimizer", "optimizer", "c2"},
     {"padding", "padding", "c5"},
     {"communication_latency", "communication: latency", "c3"},
     {"communication_bandwidth", "communication: bandwidth", "c6"},
     {"waiting", "waiting for other ranks", "c1"},
     {"bubbles", "bubbles", "idle"}}};

}  // namespace

std::string step_timeline_html(const StepTimes& times) {
  return TimelineWriter(times).write();
}

std::string rank_shares_html(const StepTimes& times) {
  BarChart chart{.title = fmt::format("What ranks computed in step {}", times.step),
                 .bars = {},
                 .whole = times.measured.length_seconds};
  for (const RankTracks& rank : ranks_of(times)) {
    const SecondsByCategory seconds = seconds_of(times.measured, rank.tracks.front());
    Bar bar{.label = fmt::format("rank {}", rank.rank), .parts = {}, .text = {}};
    double busy = 0;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      if (seconds[i] <= 0) continue;
      const auto category = static_cast<Category>(i);
      bar.parts.push_back({std::string(trace::category_name(category)), std::string(color_of(category)),
                           seconds[i], trace::format_duration(seconds[i])});
      busy += seconds[i];
    }
    const double idle = std::max(0.0, times.measured.length_seconds - busy);
    bar.parts.push_back({"idle", "idle", idle, trace::format_duration(idle)});
    bar.text = times.measured.length_seconds > 0 ? percent_text(busy / times.measured.length_seconds) : "";
    chart.bars.push_back(std::move(bar));
  }
  chart.note = "At the right the share of the step in which the rank computes.";
  if (times.waited_seconds > 1e-6)
    chart.note += fmt::format(" Before the step, {} went by waiting for its data.",
                              trace::format_duration(times.waited_seconds));
  return bar_chart_html(chart);
}

std::string breakdown_html(const StepTimes& times) {
  Bar bar{.label = "", .parts = {}, .text = trace::format_duration(times.predicted.step_seconds)};
  for (const BreakdownName& name : kBreakdownNames) {
    const auto part = std::ranges::find(times.breakdown, name.key, &std::pair<std::string, double>::first);
    if (part == times.breakdown.end() || part->second <= 0) continue;
    bar.parts.push_back({name.name, name.color, part->second, trace::format_duration(part->second)});
  }
  if (bar.parts.empty()) return "";
  return bar_chart_html(
      {.title = "Where the time of the predicted step goes",
       .bars = {std::move(bar)},
       .whole = 0,
       .note = "Mean over ranks, by what limits each operation on the machine as it was measured."});
}

std::string prediction_table_html(const StepTimes& times) {
  Table table{.caption = "Seconds of the step by kind of work, over all ranks",
              .header = {"", "predicted", "measured", "difference"},
              .rows = {}};
  SecondsByCategory predicted{};
  SecondsByCategory measured{};
  for (const StepSpan& span : times.predicted.spans)
    predicted[static_cast<std::size_t>(span.category)] += span.end - span.begin;
  for (const StepSpan& span : times.measured.spans)
    measured[static_cast<std::size_t>(span.category)] += span.end - span.begin;
  const auto add_row = [&table](std::string name, double expected, double taken) {
    table.rows.push_back({std::move(name), trace::format_duration(expected), trace::format_duration(taken),
                          expected > 0 ? fmt::format("{:+.1f} %", 100 * (taken / expected - 1)) : ""});
  };
  for (std::size_t i = 0; i < measured.size(); ++i)
    if (predicted[i] > 0 || measured[i] > 0)
      add_row(std::string(trace::category_name(static_cast<Category>(i))), predicted[i], measured[i]);
  add_row("the whole step", times.predicted.step_seconds, times.measured.step_seconds);
  return table_html(table);
}

}  // namespace plenum::report
