#include "plenum/trace/svg_chart.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "plenum/trace/palette.h"
#include "plenum/trace/printable.h"
#include "plenum/trace/process_rows.h"
#include "plenum/trace/svg_text.h"
#include "plenum/trace/time_axis.h"

namespace plenum::trace {
namespace {

// Pixels.
constexpr std::size_t kLeastChartWidth = 400;
constexpr double kMargin = 16;
constexpr double kTitleHeight = 30;
constexpr double kSubtitleHeight = 18;
constexpr double kLegendHeight = 24;
constexpr double kStepHeight = 20;
constexpr double kStepLabelWidth = 40;
constexpr double kAxisHeight = 34;
constexpr double kFootnoteHeight = 20;
constexpr double kNoteWidth = 52;
constexpr double kStripHeight = 5;
constexpr double kStripGap = 2;
constexpr double kPixelsPerTick = 90;
constexpr double kLetterWidth = 6.6;  ///< of small text
constexpr double kLeastBlock = 2;     ///< narrower ones of a kind are drawn together
constexpr double kLeastOutlined = 4;  ///< narrower ones have no border
constexpr double kLeastOutlinedFiller = 9;
constexpr double kLeastTextHeight = 14;  ///< of a row whose blocks carry numbers

/// Rows are tall when there are few.
double row_height(std::size_t num_rows) {
  if (num_rows <= 8) return 30;
  if (num_rows <= 20) return 22;
  if (num_rows <= 40) return 15;
  return 11;
}

double row_gap(double height) {
  if (height > 20) return 6;
  return height > 12 ? 4 : 2;
}

/// Neighbouring blocks of a category that are drawn as one.
struct Block {
  double begin = 0;  ///< pixels
  double end = 0;
  const Span* first = nullptr;
  const Span* last = nullptr;
  std::size_t num_spans = 1;
};

class ChartWriter {
 public:
  explicit ChartWriter(const SvgChart& chart)
      : chart_(chart),
        height_(row_height(chart.rows.size())),
        gap_(row_gap(height_)),
        width_(static_cast<double>(std::max(chart.width, kLeastChartWidth))) {
    for (const SvgRow& row : chart.rows) {
      const std::size_t num_letters = num_columns(row.label) + num_columns(row.detail) + 1;
      label_width_ = std::max(label_width_, static_cast<double>(num_letters) * kLetterWidth);
      note_categories(*row.timeline, row.spans);
      for (const SvgStrip& strip : row.strips) note_categories(*row.timeline, strip.spans);
    }
    left_ = kMargin + label_width_ + 10;
    right_ = width_ - kMargin - kNoteWidth;
    lay_out();
  }

  std::string write() {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "role=\"img\">\n<title>{2}</title>\n",
        coordinate(width_), coordinate(total_height_), escape_xml(chart_.title));
    svg_ += svg_style();
    add("<rect class=\"page\" width=\"{}\" height=\"{}\"/>\n", coordinate(width_), coordinate(total_height_));
    add_header();
    for (const double top : row_tops_) {
      add("<rect class=\"lane\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", coordinate(left_),
          coordinate(top), coordinate(right_ - left_), coordinate(height_));
    }
    add_grid();
    for (std::size_t i = 0; i < chart_.rows.size(); ++i) add_row(i);
    add_steps();
    add_arrows();
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
  }

  bool is_shown(double seconds) const {
    return seconds >= chart_.from_seconds && seconds <= chart_.to_seconds;
  }

  bool is_shown(const Timeline& timeline, const Span& span) const {
    return span.end_seconds > span.start_seconds &&
           span.end_seconds - timeline.begin_seconds > chart_.from_seconds &&
           span.start_seconds - timeline.begin_seconds < chart_.to_seconds;
  }

  void note_categories(const Timeline& timeline, std::span<const Span> spans) {
    for (const Span& span : spans) {
      if (is_shown(timeline, span)) is_present_[static_cast<std::size_t>(span.category)] = true;
    }
  }

  double x_of(double seconds) const {
    const double length = chart_.to_seconds - chart_.from_seconds;
    if (length <= 0) return left_;
    return left_ + std::clamp((seconds - chart_.from_seconds) / length, 0.0, 1.0) * (right_ - left_);
  }

  double strip_top(std::size_t row, std::size_t strip) const {
    return row_tops_[row] + height_ + kStripGap + static_cast<double>(strip) * (kStripHeight + kStripGap);
  }

  void lay_out() {
    rows_top_ = kMargin + kTitleHeight + kSubtitleHeight + kLegendHeight;
    if (chart_.step_seconds.size() > 1) rows_top_ += kStepHeight;
    const bool has_groups = std::any_of(chart_.rows.begin(), chart_.rows.end(),
                                        [](const SvgRow& row) { return row.begins_group; });
    double y = rows_top_;
    for (std::size_t i = 0; i < chart_.rows.size(); ++i) {
      const SvgRow& row = chart_.rows[i];
      // Rows of a group stand close, groups apart.
      if (i > 0) y += !has_groups ? gap_ : row.begins_group ? 2 * gap_ : gap_ / 3;
      row_tops_.push_back(y);
      y += height_ + static_cast<double>(row.strips.size()) * (kStripHeight + kStripGap);
      if (!row.strips.empty()) y += gap_;
    }
    rows_end_ = y + gap_ / 2;
    total_height_ = rows_end_ + kAxisHeight + (chart_.footnote.empty() ? 0 : kFootnoteHeight);
  }

  void add_header() {
    double y = kMargin + kTitleHeight / 2 + 4;
    add("<text class=\"title\" x=\"{}\" y=\"{}\">{}</text>\n", coordinate(kMargin), coordinate(y),
        escape_xml(chart_.title));
    y += kSubtitleHeight;
    add("<text class=\"note quiet\" x=\"{}\" y=\"{}\">{}</text>\n", coordinate(kMargin), coordinate(y),
        escape_xml(chart_.subtitle));
    add_legend(y + 12);
  }

  void add_legend(double y) {
    double x = kMargin;
    for (std::size_t i = 0; i < kNumCategories; ++i) {
      if (!is_present_[i]) continue;
      const auto category = static_cast<Category>(i);
      const std::string_view name = category_name(category);
      add("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"18\" height=\"12\" rx=\"2\"/>"
          "<text class=\"small\" x=\"{}\" y=\"{}\">{}</text>\n",
          class_of(category), coordinate(x), coordinate(y), coordinate(x + 23), coordinate(y + 10), name);
      x += 23 + static_cast<double>(name.size()) * kLetterWidth + 18;
    }
    const bool has_pale = std::any_of(chart_.rows.begin(), chart_.rows.end(),
                                      [](const SvgRow& row) { return stages_of(row.spans).size() > 1; });
    if (!has_pale) return;
    add("<text class=\"small quiet\" x=\"{}\" y=\"{}\">paler: every second stage of a rank</text>\n",
        coordinate(x), coordinate(y + 10));
  }

  void add_grid() {
    const auto most_ticks = static_cast<std::size_t>((right_ - left_) / kPixelsPerTick);
    for (const Tick& tick : round_ticks(chart_.from_seconds, chart_.to_seconds, most_ticks)) {
      const std::string x = coordinate(x_of(tick.seconds));
      add("<path class=\"grid\" d=\"M{} {}V{}\"/>"
          "<text class=\"small quiet\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n",
          x, coordinate(rows_top_ - 2), coordinate(rows_end_ + 4), x, coordinate(rows_end_ + 18), tick.label);
    }
    add("<text class=\"small quiet\" text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text>\n",
        coordinate(width_ - kMargin), coordinate(rows_end_ + 18), unit_for(chart_.to_seconds).name);
    if (chart_.footnote.empty()) return;
    add("<text class=\"small quiet\" x=\"{}\" y=\"{}\">{}</text>\n", coordinate(kMargin),
        coordinate(total_height_ - 10), escape_xml(chart_.footnote));
  }

  void add_steps() {
    if (chart_.step_seconds.size() < 2) return;
    for (std::size_t step = 0; step < chart_.step_seconds.size(); ++step) {
      if (!is_shown(chart_.step_seconds[step])) continue;
      const double x = x_of(chart_.step_seconds[step]);
      add("<path class=\"step\" d=\"M{} {}V{}\"/>\n", coordinate(x), coordinate(rows_top_ - kStepHeight + 4),
          coordinate(rows_end_));
      if (x + kStepLabelWidth > right_) continue;
      add("<text class=\"small quiet\" x=\"{}\" y=\"{}\">step {}</text>\n", coordinate(x + 4),
          coordinate(rows_top_ - 7), step);
    }
  }

  void add_row(std::size_t index) {
    const SvgRow& row = chart_.rows[index];
    const double top = row_tops_[index];
    const double baseline = top + height_ / 2 + 4;
    add("<text class=\"small\" x=\"{}\" y=\"{}\">{}", coordinate(kMargin), coordinate(baseline),
        escape_xml(row.label));
    if (!row.detail.empty()) add(" <tspan class=\"quiet\">{}</tspan>", escape_xml(row.detail));
    add("</text><text class=\"small quiet\" text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text>\n",
        coordinate(width_ - kMargin), coordinate(baseline), escape_xml(row.note));
    add_spans(*row.timeline, row.spans, stages_of(row.spans), top, height_);
    for (std::size_t strip = 0; strip < row.strips.size(); ++strip) {
      const double strip_y = strip_top(index, strip);
      add("<text class=\"tiny quiet\" text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text>\n",
          coordinate(left_ - 5), coordinate(strip_y + kStripHeight), escape_xml(row.strips[strip].label));
      add_spans(*row.timeline, row.strips[strip].spans, {}, strip_y, kStripHeight);
    }
  }

  void add_spans(const Timeline& timeline, std::span<const Span> spans,
                 const std::vector<std::uint16_t>& stages, double top, double height) {
    Block block;
    for (const Span& span : spans) {
      if (!is_shown(timeline, span)) continue;
      const double begin = x_of(span.start_seconds - timeline.begin_seconds);
      const double end = x_of(span.end_seconds - timeline.begin_seconds);
      const bool is_narrow = end - begin < kLeastBlock;
      const bool continues = block.first != nullptr && is_narrow && block.last->category == span.category &&
                             block.end - block.begin < kLeastBlock * static_cast<double>(block.num_spans) &&
                             begin - block.end < 0.3;
      if (continues) {
        block.end = end;
        block.last = &span;
        ++block.num_spans;
        continue;
      }
      if (block.first != nullptr) add_block(timeline, block, stages, top, height);
      block = {begin, end, &span, &span, 1};
    }
    if (block.first != nullptr) add_block(timeline, block, stages, top, height);
  }

  void add_block(const Timeline& timeline, const Block& block, const std::vector<std::uint16_t>& stages,
                 double top, double height) {
    const Span& span = *block.first;
    const double width = block.end - block.begin;
    // Where a rank has several stages, every second one is paler.
    const auto stage = std::find(stages.begin(), stages.end(), span.stage);
    const bool is_pale = stage != stages.end() && (stage - stages.begin()) % 2 == 1;
    const bool is_filler = style_of(span.category).hatch != Hatch::None;
    const bool is_outlined = width >= (is_filler ? kLeastOutlinedFiller : kLeastOutlined);
    add("<rect class=\"{}{}{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>\n",
        class_of(span.category), is_outlined ? " b" : "", is_pale ? " alt" : "", coordinate(block.begin),
        coordinate(top), coordinate(std::max(width, 0.4)), coordinate(height),
        escape_xml(tooltip(timeline, block)));
    if (span.micro_batch < 0 || block.num_spans > 1 || height < kLeastTextHeight) return;
    const std::string number = fmt::format("{}", span.micro_batch);
    // Fillers are many and small: numbers would only clutter them.
    const double num_free = is_filler ? 24 : 4;
    if (static_cast<double>(number.size()) * kLetterWidth + num_free > width) return;
    add("<text class=\"small n\" x=\"{}\" y=\"{}\">{}</text>\n", coordinate((block.begin + block.end) / 2),
        coordinate(top + height / 2 + 4), number);
  }

  static std::string tooltip(const Timeline& timeline, const Block& block) {
    const Span& span = *block.first;
    const Span& last = *block.last;
    std::string text = timeline.labels[span.label];
    if (block.num_spans > 1) {
      text += fmt::format(" to {} ({} actions)", timeline.labels[last.label], block.num_spans);
    }
    text += fmt::format(": {}", category_name(span.category));
    if (span.stage != kNoStage) text += fmt::format(", stage {}", span.stage);
    if (span.micro_batch >= 0 && block.num_spans == 1)
      text += fmt::format(", micro-batch {}", span.micro_batch);
    text += fmt::format(", step {}, {} from {}", span.step,
                        format_duration(last.end_seconds - span.start_seconds),
                        format_duration(span.start_seconds - timeline.begin_seconds));
    return text;
  }

  double arrow_y(std::size_t row, std::size_t strip) const {
    if (chart_.rows[row].strips.empty()) return row_tops_[row] + height_ / 2;
    return strip_top(row, strip) + kStripHeight / 2;
  }

  void add_arrows() {
    for (const SvgArrow& arrow : chart_.arrows) {
      if (!is_shown(arrow.from_seconds) || !is_shown(arrow.to_seconds)) continue;
      add("<path class=\"flow\" marker-end=\"url(#plenum-head)\" d=\"M{} {}L{} {}\"/>\n",
          coordinate(x_of(arrow.from_seconds)), coordinate(arrow_y(arrow.from_row, arrow.from_strip)),
          coordinate(x_of(arrow.to_seconds)), coordinate(arrow_y(arrow.to_row, arrow.to_strip)));
    }
  }

  const SvgChart& chart_;
  double height_;
  double gap_;
  double width_;
  double label_width_ = 0;
  double left_ = 0;
  double right_ = 0;
  double rows_top_ = 0;
  double rows_end_ = 0;
  double total_height_ = 0;
  std::vector<double> row_tops_;
  std::array<bool, kNumCategories> is_present_ = {};
  std::string svg_;
};

}  // namespace

std::string write_svg(const SvgChart& chart) {
  return ChartWriter(chart).write();
}

}  // namespace plenum::trace
