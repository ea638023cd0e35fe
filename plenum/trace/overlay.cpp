#include "plenum/trace/overlay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/trace/printable.h"
#include "plenum/trace/process_rows.h"
#include "plenum/trace/svg_chart.h"
#include "plenum/trace/time_axis.h"

namespace plenum::trace {
namespace {

constexpr std::size_t kMostProcesses = 32;

std::string_view label_of(const Timeline& timeline, const Span& span) {
  return timeline.labels[span.label];
}

double duration_of(const Span& span) {
  return span.end_seconds - span.start_seconds;
}

double start_in_step(const Timeline& timeline, const Span& span) {
  const bool has_steps = span.step < timeline.step_begin_seconds.size();
  return span.start_seconds - (has_steps ? timeline.step_begin_seconds[span.step] : timeline.begin_seconds);
}

/// "F2.1 on rank 2, step 0".
std::string place_of(const Timeline& timeline, const Span& span) {
  return fmt::format("{} on rank {}, step {}", label_of(timeline, span), timeline.tracks[span.track].process,
                     span.step);
}

void require_same_schedule(const Timeline& predicted, const Timeline& measured) {
  constexpr const char* kIntroduction = "the timelines are not of the same schedule";
  base::require(predicted.tracks.size() == measured.tracks.size(), "{}: {} tracks predicted, {} measured",
                kIntroduction, predicted.tracks.size(), measured.tracks.size());
  for (std::size_t i = 0; i < predicted.tracks.size(); ++i) {
    const Track& track = predicted.tracks[i];
    const Track& other = measured.tracks[i];
    base::require(track.process == other.process && track.name == other.name,
                  "{}: track {} is rank {}, {} in the prediction and rank {}, {} in the measurement",
                  kIntroduction, i, track.process, track.name, other.process, other.name);
  }
  const std::size_t num_common = std::min(predicted.spans.size(), measured.spans.size());
  for (std::size_t i = 0; i < num_common; ++i) {
    const Span& span = predicted.spans[i];
    const Span& other = measured.spans[i];
    const bool is_same = span.track == other.track && span.step == other.step &&
                         label_of(predicted, span) == label_of(measured, other);
    base::require(is_same, "{}: {} predicted, {} measured", kIntroduction, place_of(predicted, span),
                  place_of(measured, other));
  }
  base::require(predicted.spans.size() == measured.spans.size(), "{}: {} actions predicted, {} measured",
                kIntroduction, predicted.spans.size(), measured.spans.size());
}

bool waits_for_others(Category category) {
  return category == Category::Message || category == Category::Collective;
}

/// Adds one span; the means are sums until finish().
void add_error(CategoryError& sum, const Overlay& overlay, std::uint32_t index) {
  const SpanError& error = overlay.errors[index];
  if (sum.num_spans == 0 ||
      std::abs(error.duration_seconds) > std::abs(overlay.errors[sum.worst_span].duration_seconds)) {
    sum.worst_span = index;
  }
  ++sum.num_spans;
  sum.predicted_seconds += duration_of(overlay.predicted->spans[index]);
  sum.measured_seconds += duration_of(overlay.measured->spans[index]);
  sum.mean_error_seconds += std::abs(error.duration_seconds);
  sum.mean_start_error_seconds += std::abs(error.start_seconds);
}

void finish(CategoryError& sum) {
  if (sum.measured_seconds > 0) sum.relative_error = sum.mean_error_seconds / sum.measured_seconds;
  sum.mean_error_seconds /= static_cast<double>(sum.num_spans);
  sum.mean_start_error_seconds /= static_cast<double>(sum.num_spans);
}

std::uint32_t find_worst(const Overlay& overlay) {
  if (overlay.categories.empty()) return 0;
  const auto key = [&overlay](const CategoryError& category) {
    return std::pair(!waits_for_others(category.category),
                     std::abs(overlay.errors[category.worst_span].duration_seconds));
  };
  return std::max_element(overlay.categories.begin(), overlay.categories.end(),
                          [&key](const CategoryError& a, const CategoryError& b) { return key(a) < key(b); })
      ->worst_span;
}

std::string percent(double measured, double predicted) {
  if (predicted <= 0) return "";
  return fmt::format(" ({:+.1f} %)", 100 * (measured - predicted) / predicted);
}

SvgRow row_of(const Timeline& timeline, const ProcessRow& process, std::string label, std::string detail) {
  const std::span<const Span> spans = process.tracks.front().spans;
  const double length = timeline.end_seconds - timeline.begin_seconds;
  const double busy = busy_seconds(spans, timeline.begin_seconds, timeline.end_seconds);
  return {.label = std::move(label),
          .detail = std::move(detail),
          .note = length > 0 ? fmt::format("{:.1f} %", 100 * busy / length) : "",
          .timeline = &timeline,
          .spans = spans};
}

std::string summary(const Overlay& overlay) {
  return fmt::format("step {} predicted, {} measured{}", format_duration(overlay.predicted_step_seconds),
                     format_duration(overlay.measured_step_seconds),
                     percent(overlay.measured_step_seconds, overlay.predicted_step_seconds));
}

}  // namespace

Overlay lay_over(const Timeline& predicted, const Timeline& measured) {
  require_same_schedule(predicted, measured);
  Overlay overlay{.predicted = &predicted,
                  .measured = &measured,
                  .errors = {},
                  .categories = {},
                  .predicted_step_seconds = mean_step_seconds(predicted),
                  .measured_step_seconds = mean_step_seconds(measured)};
  std::array<CategoryError, kNumCategories> sums = {};
  for (std::uint32_t i = 0; i < predicted.spans.size(); ++i) {
    const Span& span = predicted.spans[i];
    const Span& other = measured.spans[i];
    overlay.errors.push_back({start_in_step(measured, other) - start_in_step(predicted, span),
                              duration_of(other) - duration_of(span)});
    add_error(sums[static_cast<std::size_t>(span.category)], overlay, i);
  }
  for (std::size_t i = 0; i < kNumCategories; ++i) {
    if (sums[i].num_spans == 0) continue;
    sums[i].category = static_cast<Category>(i);
    finish(sums[i]);
    overlay.categories.push_back(sums[i]);
  }
  overlay.worst_span = find_worst(overlay);
  return overlay;
}

std::string overlay_text(const Overlay& overlay) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{:<16}{:>8}{:>13}{:>13}{:>13}{:>10}{:>13}\n", "", "actions", "predicted", "measured",
                 "mean error", "relative", "start error");
  for (const CategoryError& category : overlay.categories) {
    fmt::format_to(out, "{:<16}{:>8}{:>13}{:>13}{:>13}{:>9.1f}%{:>13}\n", category_name(category.category),
                   category.num_spans, format_duration(category.predicted_seconds),
                   format_duration(category.measured_seconds), format_duration(category.mean_error_seconds),
                   100 * category.relative_error, format_duration(category.mean_start_error_seconds));
  }
  fmt::format_to(out, "{}\n", summary(overlay));
  if (overlay.errors.empty()) return text;
  const Span& worst = overlay.predicted->spans[overlay.worst_span];
  const double predicted = duration_of(worst);
  const double measured = duration_of(overlay.measured->spans[overlay.worst_span]);
  fmt::format_to(out, "differs most: {}: {} predicted, {} measured{}\n", place_of(*overlay.predicted, worst),
                 format_duration(predicted), format_duration(measured), percent(measured, predicted));
  return text;
}

std::string overlay_json(const Overlay& overlay, std::string_view title) {
  const Timeline& predicted = *overlay.predicted;
  const Timeline& measured = *overlay.measured;
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "{{\"title\":{},\"predicted_step_seconds\":{},\"measured_step_seconds\":{},\"actions\":[",
                 json_quoted(title), overlay.predicted_step_seconds, overlay.measured_step_seconds);
  for (std::size_t i = 0; i < overlay.errors.size(); ++i) {
    const Span& span = predicted.spans[i];
    const Track& track = predicted.tracks[span.track];
    const double start = start_in_step(predicted, span);
    const double duration = duration_of(span);
    const double measured_start = start + overlay.errors[i].start_seconds;
    const double measured_duration = duration + overlay.errors[i].duration_seconds;
    fmt::format_to(
        out,
        "{}\n{{\"action\":{},\"rank\":{},\"lane\":{},\"category\":{},\"predicted\":[{:.9f},{:.9f}],"
        "\"measured\":[{:.9f},{:.9f}],\"error_seconds\":{:.9f}}}",
        i == 0 ? "" : ",", json_quoted(label_of(measured, measured.spans[i])), track.process,
        json_quoted(track.name), json_quoted(category_name(span.category)), start, start + duration,
        measured_start, measured_start + measured_duration, overlay.errors[i].duration_seconds);
  }
  return text + "\n]}\n";
}

std::string overlay_svg(const Overlay& overlay, std::string title) {
  const Timeline& predicted = *overlay.predicted;
  const Timeline& measured = *overlay.measured;
  SvgChart chart{.title = std::move(title),
                 .subtitle = summary(overlay),
                 .footnote = {},
                 .from_seconds = 0,
                 .to_seconds = std::max(predicted.end_seconds - predicted.begin_seconds,
                                        measured.end_seconds - measured.begin_seconds),
                 .step_seconds = {},
                 .rows = {},
                 .arrows = {}};
  for (const double begin : measured.step_begin_seconds) {
    chart.step_seconds.push_back(begin - measured.begin_seconds);
  }
  const std::vector<ProcessRow> expected = process_rows(predicted);
  const std::vector<ProcessRow> actual = process_rows(measured);
  for (std::size_t i = 0; i < std::min(expected.size(), kMostProcesses); ++i) {
    chart.rows.push_back(
        row_of(predicted, expected[i], fmt::format("rank {}", expected[i].process), "predicted"));
    chart.rows.back().begins_group = true;
    chart.rows.push_back(row_of(measured, actual[i], "", "measured"));
  }
  if (expected.size() > kMostProcesses) {
    chart.footnote = fmt::format("{} more ranks are not drawn", expected.size() - kMostProcesses);
  }
  return write_svg(chart);
}

}  // namespace plenum::trace
