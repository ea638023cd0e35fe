#include "plenum/trace/svg_scatter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plenum/trace/svg_text.h"

namespace plenum::trace {
namespace {

// Pixels.
constexpr double kPlotSize = 520;
constexpr double kLeft = 76;
constexpr double kTop = 76;
constexpr double kRight = 24;
constexpr double kBottom = 60;
constexpr double kMarkRadius = 4;
constexpr double kMarkLetterWidth = 6.6;  ///< of small text

/// Told apart by people who see few colours, too.
constexpr std::array<std::string_view, 8> kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                     "#e69f00", "#56b4e9", "#7f7f7f", "#8c564b"};

using Axes = ScatterPlot::Axes;

/// The multiples of 1, 2 or 5 times a power of ten that divide an axis into about five.
double round_distance(double length) {
  const double power = std::pow(10, std::floor(std::log10(length / 5)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (length / (factor * power) <= 6) return factor * power;
  return 10 * power;
}

class ScatterWriter {
 public:
  explicit ScatterWriter(const ScatterPlot& plot) : plot_(plot) { choose_range(); }

  std::string write() {
    const double width = kLeft + kPlotSize + kRight;
    const double height = kTop + kPlotSize + kBottom;
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "role=\"img\">\n<title>{2}</title>\n",
        coordinate(width), coordinate(height), escape_xml(plot_.title));
    svg_ += svg_style();
    add("<rect class=\"page\" width=\"{}\" height=\"{}\"/>\n", coordinate(width), coordinate(height));
    add("<text class=\"title\" x=\"16\" y=\"26\">{}</text>\n", escape_xml(plot_.title));
    add("<text class=\"note quiet\" x=\"16\" y=\"44\">{}</text>\n", escape_xml(plot_.subtitle));
    add_legend();
    add_axes();
    add_diagonal();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) add_series(i);
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
  }

  bool is_logarithmic() const { return plot_.axes == Axes::Logarithmic; }
  bool is_drawn(const ScatterPoint& point) const {
    if (!std::isfinite(point.x) || !std::isfinite(point.y)) return false;
    return !is_logarithmic() || (point.x > 0 && point.y > 0);
  }

  void choose_range() {
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    for (const ScatterSeries& series : plot_.series) {
      for (const ScatterPoint& point : series.points) {
        if (!is_drawn(point)) continue;
        least = std::min({least, point.x, point.y});
        most = std::max({most, point.x, point.y});
      }
    }
    if (least > most) {
      least = is_logarithmic() ? 1 : 0;
      most = is_logarithmic() ? 10 : 1;
    }
    if (is_logarithmic()) {
      from_ = least / 1.3;
      to_ = most * 1.3;
      return;
    }
    const double margin = most > least ? 0.08 * (most - least) : std::max(std::abs(most), 1.0) * 0.1;
    from_ = least - margin;
    to_ = most + margin;
  }

  /// From 0 to 1 along an axis.
  double share(double value) const {
    if (is_logarithmic()) return std::log(value / from_) / std::log(to_ / from_);
    return (value - from_) / (to_ - from_);
  }
  double x_of(double value) const { return kLeft + kPlotSize * share(value); }
  double y_of(double value) const { return kTop + kPlotSize * (1 - share(value)); }

  std::vector<double> ticks() const {
    std::vector<double> ticks;
    if (!is_logarithmic()) {
      const double distance = round_distance(to_ - from_);
      for (double i = std::ceil(from_ / distance); i * distance <= to_; ++i) ticks.push_back(i * distance);
      return ticks;
    }
    for (double power = std::pow(10, std::floor(std::log10(from_))); power <= to_; power *= 10)
      for (const double factor : {1.0, 2.0, 5.0})
        if (factor * power >= from_ && factor * power <= to_) ticks.push_back(factor * power);
    return ticks;
  }

  void add_legend() {
    if (plot_.series.size() < 2) return;
    double x = 16;
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      const std::string& name = plot_.series[i].name;
      add("<circle cx=\"{}\" cy=\"60\" r=\"{}\" fill=\"{}\"/><text class=\"small\" x=\"{}\" "
          "y=\"64\">{}</text>\n",
          coordinate(x + 5), coordinate(kMarkRadius), kColors[i % kColors.size()], coordinate(x + 14),
          escape_xml(name));
      x += 14 + static_cast<double>(name.size()) * kMarkLetterWidth + 16;
    }
  }

  void add_axes() {
    add("<rect class=\"lane\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", coordinate(kLeft),
        coordinate(kTop), coordinate(kPlotSize), coordinate(kPlotSize));
    for (const double tick : ticks()) {
      const std::string x = coordinate(x_of(tick));
      const std::string y = coordinate(y_of(tick));
      add("<path class=\"grid\" d=\"M{0} {1}V{2}M{3} {4}H{5}\"/>"
          "<text class=\"small quiet\" text-anchor=\"middle\" x=\"{0}\" y=\"{6}\">{8:.4g}</text>"
          "<text class=\"small quiet\" text-anchor=\"end\" x=\"{7}\" y=\"{4}\" dy=\"4\">{8:.4g}</text>\n",
          x, coordinate(kTop), coordinate(kTop + kPlotSize), coordinate(kLeft), y,
          coordinate(kLeft + kPlotSize), coordinate(kTop + kPlotSize + 18), coordinate(kLeft - 8), tick);
    }
    const std::string middle = coordinate(kTop + kPlotSize / 2);
    add("<text class=\"note\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n",
        coordinate(kLeft + kPlotSize / 2), coordinate(kTop + kPlotSize + 42), escape_xml(plot_.x_label));
    add("<text class=\"note\" text-anchor=\"middle\" transform=\"translate(18 {}) rotate(-90)\">{}</text>\n",
        middle, escape_xml(plot_.y_label));
  }

  /// y = factor x, within the frame.
  void add_line(double factor, std::string_view style) {
    const auto end = [&](double x) {
      const double y = std::clamp(factor * x, from_, to_);
      return std::pair(y / factor, y);
    };
    const auto [x0, y0] = end(from_);
    const auto [x1, y1] = end(to_);
    add("<path class=\"flow\" style=\"{}\" d=\"M{} {}L{} {}\"/>\n", style, coordinate(x_of(x0)),
        coordinate(y_of(y0)), coordinate(x_of(x1)), coordinate(y_of(y1)));
  }

  void add_diagonal() {
    add_line(1, "stroke-width:1.2");
    if (plot_.band <= 0 || from_ < 0) return;
    add_line(1 + plot_.band, "stroke-dasharray:3 4");
    add_line(1 / (1 + plot_.band), "stroke-dasharray:3 4");
  }

  void add_series(std::size_t index) {
    for (const ScatterPoint& point : plot_.series[index].points) {
      if (!is_drawn(point)) continue;
      add("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" "
          "fill-opacity=\".75\"><title>{}</title></circle>\n",
          coordinate(x_of(point.x)), coordinate(y_of(point.y)), coordinate(kMarkRadius),
          kColors[index % kColors.size()], escape_xml(point.label));
    }
  }

  const ScatterPlot& plot_;
  double from_ = 0;
  double to_ = 1;
  std::string svg_;
};

}  // namespace

std::string write_svg(const ScatterPlot& plot) {
  return ScatterWriter(plot).write();
}

}  // namespace plenum::trace
