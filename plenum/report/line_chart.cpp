#include "plenum/report/line_chart.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "plenum/report/html.h"
#include "plenum/report/sampling.h"
#include "plenum/trace/printable.h"
#include "plenum/trace/svg_text.h"

namespace plenum::report {
namespace {

constexpr std::size_t kTableRows = 12;
constexpr std::size_t kMostMarks = 200;
constexpr int kPlaceDigits = 9;
constexpr double kSide = 1000;  ///< of the drawing's own coordinates, both ways

Curve sampled(const Curve& curve) {
  const std::vector<std::size_t> kept = sample_extremes(curve.value, kMostPoints);
  const auto pick = [&](const std::vector<double>& all) {
    std::vector<double> some;
    if (!all.empty())
      for (const std::size_t i : kept) some.push_back(all[i]);
    return some;
  };
  // A line through one point cannot be seen.
  return {.name = curve.name,
          .color = curve.color,
          .style = kept.size() == 1 ? Curve::Style::Dots : curve.style,
          .step = pick(curve.step),
          .seconds = pick(curve.seconds),
          .tokens = pick(curve.tokens),
          .value = pick(curve.value)};
}

const char* style_name(Curve::Style style) {
  if (style == Curve::Style::Dots) return "dots";
  return style == Curve::Style::Pale ? "pale" : "line";
}

class LineChartWriter {
 public:
  explicit LineChartWriter(const LineChart& chart) : chart_(chart) {
    for (const Curve& curve : chart.curves) {
      Curve kept = sampled(curve);
      if (!kept.value.empty()) curves_.push_back(std::move(kept));
    }
    if (curves_.empty()) return;
    double first = curves_.front().step.front();
    double last = first;
    double least = std::numeric_limits<double>::infinity();
    double greatest = -least;
    for (const Curve& curve : curves_) {
      first = std::min(first, curve.step.front());
      last = std::max(last, curve.step.back());
      for (const double value : curve.value) {
        if (chart.scale == Scale::Logarithmic && value <= 0) continue;
        least = std::min(least, value);
        greatest = std::max(greatest, value);
      }
    }
    if (least > greatest) least = greatest = 1;
    if (chart.from_zero) least = std::min(0.0, least);
    x_ = {first, std::max(last, first + 1), Scale::Linear};
    y_ = axis_of(least, greatest, chart.scale);
    for (const ChartMark& mark : chart.marks)
      if (mark.step >= x_.from && mark.step <= x_.to && marks_.size() < kMostMarks) marks_.push_back(mark);
  }

  std::string write() {
    if (curves_.empty()) return "";
    add("<figure class=\"chart line-chart\">\n<figcaption><h3>{}</h3>", escape(chart_.title));
    add_legend();
    html_ += "</figcaption>\n<div class=\"plot\">\n<div class=\"y-labels\" aria-hidden=\"true\">";
    const std::vector<AxisTick> y_ticks = ticks_of(y_, 5);
    for (const AxisTick& tick : y_ticks)
      add("<span style=\"bottom:{}%\">{}</span>", trace::coordinate(100 * y_.place(tick.value)),
          chart_.in_percent ? tick_label(100 * tick.value) + " %" : tick.label);
    add("</div>\n<svg viewBox=\"0 0 {0} {0}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{1}\">",
        kSide, escape(description()));
    add_drawing(y_ticks);
    html_ += "</svg>\n<div class=\"x-labels\" aria-hidden=\"true\">";
    for (const AxisTick& tick : ticks_of(x_, 6))
      add("<span style=\"left:{}%\">{}</span>", trace::coordinate(100 * x_.place(tick.value)), tick.label);
    html_ += "</div>\n<div class=\"x-name\" aria-hidden=\"true\">step</div></div>\n";
    if (!chart_.note.empty()) add("<p class=\"note\">{}</p>\n", escape(chart_.note));
    html_ += folded_table_html(table());
    add("<script type=\"application/json\">{}</script>\n</figure>\n", script_json(json()));
    return std::move(html_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(html_), format, std::forward<Args>(args)...);
  }

  std::string value_text(double value) const {
    return chart_.in_percent ? percent_text(value) : number_text(value);
  }

  void add_legend() {
    html_ += "<span class=\"legend\">";
    for (const Curve& curve : curves_)
      add("<span class=\"key c{} {}\">{}</span>", curve.color, style_name(curve.style), escape(curve.name));
    html_ += "</span>";
  }

  /// For those who do not see it.
  std::string description() const {
    std::string text = chart_.title;
    for (const Curve& curve : curves_) {
      const auto [least, greatest] = std::ranges::minmax(curve.value);
      text += fmt::format(". {}: {} at step {}, {} at step {}, least {}, greatest {}", curve.name,
                          value_text(curve.value.front()), number_text(curve.step.front()),
                          value_text(curve.value.back()), number_text(curve.step.back()), value_text(least),
                          value_text(greatest));
    }
    return text;
  }

  void add_drawing(const std::vector<AxisTick>& y_ticks) {
    html_ += "<path class=\"grid\" d=\"";
    for (const AxisTick& tick : y_ticks)
      add("M0 {}H{}", trace::coordinate(kSide * (1 - y_.place(tick.value))), kSide);
    html_ += "\"/>";
    for (const ChartMark& mark : marks_) {
      add("<path class=\"mark\" d=\"M{} 0V{}\"><title>{}</title></path>",
          trace::coordinate(kSide * x_.place(mark.step)), kSide, escape(mark.text));
    }
    for (const Curve& curve : curves_) add_curve(curve);
  }

  void add_curve(const Curve& curve) {
    add("<path class=\"curve c{} {}\" d=\"", curve.color, style_name(curve.style));
    bool is_first = true;
    for (std::size_t i = 0; i < curve.value.size(); ++i) {
      if (chart_.scale == Scale::Logarithmic && curve.value[i] <= 0) continue;
      add("{}{} {}", is_first || curve.style == Curve::Style::Dots ? 'M' : 'L',
          trace::coordinate(kSide * x_.place(curve.step[i])),
          trace::coordinate(kSide * (1 - y_.place(curve.value[i]))));
      if (curve.style == Curve::Style::Dots) html_ += "h0";
      is_first = false;
    }
    html_ += "\"/>";
  }

  /// A few steps of each curve, from the first to the last.
  Table table() const {
    Table table{.caption = chart_.title + (chart_.unit.empty() ? "" : ", " + chart_.unit),
                .header = {"step"},
                .rows = {}};
    std::vector<double> steps;
    const Curve& longest =
        *std::ranges::max_element(curves_, {}, [](const Curve& curve) { return curve.step.size(); });
    const std::size_t count = std::min(kTableRows, longest.step.size());
    for (std::size_t i = 0; i < count; ++i)
      steps.push_back(longest.step[count == 1 ? 0 : i * (longest.step.size() - 1) / (count - 1)]);
    for (const Curve& curve : curves_) table.header.push_back(curve.name);
    for (const double step : steps) {
      table.rows.push_back({number_text(step)});
      for (const Curve& curve : curves_) table.rows.back().push_back(nearest(curve, step));
    }
    return table;
  }

  /// The last value up to a step.
  std::string nearest(const Curve& curve, double step) const {
    const auto behind = std::ranges::upper_bound(curve.step, step);
    if (behind == curve.step.begin()) return "";
    return value_text(curve.value[static_cast<std::size_t>(behind - curve.step.begin()) - 1]);
  }

  std::string json() const {
    std::string text = fmt::format("{{\"log\":{},\"zero\":{},\"percent\":{},\"curves\":[",
                                   chart_.scale == Scale::Logarithmic, chart_.from_zero, chart_.in_percent);
    for (std::size_t i = 0; i < curves_.size(); ++i) {
      const Curve& curve = curves_[i];
      text += fmt::format(
          "{}{{\"name\":{},\"color\":{},\"style\":\"{}\",\"step\":{},\"seconds\":{},\"tokens\":{},\"value\":{"
          "}}}",
          i == 0 ? "" : ",", trace::json_quoted(curve.name), curve.color, style_name(curve.style),
          json_numbers(curve.step, kPlaceDigits), json_numbers(curve.seconds, kPlaceDigits),
          json_numbers(curve.tokens, kPlaceDigits), json_numbers(curve.value));
    }
    text += "],\"marks\":[";
    for (std::size_t i = 0; i < marks_.size(); ++i)
      text += fmt::format("{}[{},{}]", i == 0 ? "" : ",", marks_[i].step, trace::json_quoted(marks_[i].text));
    return text + "]}";
  }

  const LineChart& chart_;
  std::vector<Curve> curves_;
  std::vector<ChartMark> marks_;  ///< that are drawn
  Axis x_;
  Axis y_;
  std::string html_;
};

}  // namespace

std::string line_chart_html(const LineChart& chart) {
  return LineChartWriter(chart).write();
}

}  // namespace plenum::report
