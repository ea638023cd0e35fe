#include "plenum/report/bar_chart.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "plenum/report/html.h"
#include "plenum/trace/svg_text.h"

namespace plenum::report {
namespace {

double length_of(const Bar& bar) {
  double sum = 0;
  for (const BarPart& part : bar.parts) sum += part.value;
  return sum;
}

std::string legend_html(const BarChart& chart) {
  std::string html = "<span class=\"legend\">";
  std::set<std::string> names;
  for (const Bar& bar : chart.bars) {
    for (const BarPart& part : bar.parts) {
      if (part.value <= 0 || !names.insert(part.name).second) continue;
      html += fmt::format("<span class=\"key block {}\">{}</span>", part.color, escape(part.name));
    }
  }
  return html + "</span>";
}

std::string bar_html(const Bar& bar, double whole) {
  const std::string label =
      bar.label.empty() ? "" : fmt::format("<span class=\"label\">{}</span>", escape(bar.label));
  std::string html = fmt::format(
      "<div class=\"bar{}\">{}<svg viewBox=\"0 0 1000 10\" "
      "preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"lane\" width=\"1000\" height=\"10\"/>",
      bar.label.empty() ? " whole" : "", label);
  double begin = 0;
  for (const BarPart& part : bar.parts) {
    if (part.value <= 0) continue;
    html += fmt::format(
        "<rect class=\"block {}\" x=\"{}\" width=\"{}\" height=\"10\"><title>{}: {}</title></rect>",
        part.color, trace::coordinate(1000 * begin / whole), trace::coordinate(1000 * part.value / whole),
        escape(part.name), escape(part.text));
    begin += part.value;
  }
  return html + fmt::format("</svg><span class=\"value\">{}</span></div>\n", escape(bar.text));
}

Table table_of(const BarChart& chart) {
  Table table{.caption = chart.title, .header = {"", "value"}, .rows = {}};
  for (const Bar& bar : chart.bars) {
    for (const BarPart& part : bar.parts) {
      const bool is_named = bar.label.empty() || bar.label == part.name;
      table.rows.push_back({is_named ? part.name : fmt::format("{}, {}", bar.label, part.name), part.text});
    }
  }
  return table;
}

std::string note_html(const std::string& note) {
  return note.empty() ? "" : fmt::format("<p class=\"note\">{}</p>\n", escape(note));
}

/// The indices of at most so many of `count`, evenly spread.
std::vector<std::size_t> some_of(std::size_t count, std::size_t most) {
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < count; i += std::max<std::size_t>(1, (count + most - 1) / most))
    some.push_back(i);
  return some;
}

}  // namespace

std::string bar_chart_html(const BarChart& chart) {
  if (chart.bars.empty()) return "";
  double whole = chart.whole;
  if (whole <= 0)
    for (const Bar& bar : chart.bars) whole = std::max(whole, length_of(bar));
  if (whole <= 0) return "";
  std::string html = fmt::format(
      "<figure class=\"chart bar-chart\">\n<figcaption><h3>{}</h3>{}</figcaption>\n<div class=\"bars\">\n",
      escape(chart.title), chart.has_legend ? legend_html(chart) : "");
  for (const Bar& bar : chart.bars) html += bar_html(bar, whole);
  return html + "</div>\n" + note_html(chart.note) + folded_table_html(table_of(chart)) + "</figure>\n";
}

std::string column_chart_html(const ColumnChart& chart) {
  const double most = chart.counts.empty() ? 0 : std::ranges::max(chart.counts);
  if (most <= 0) return "";
  const std::size_t count = chart.counts.size();
  std::string html = fmt::format(
      "<figure class=\"chart column-chart\">\n<figcaption><h3>{0}</h3></figcaption>\n<div class=\"plot\">"
      "<div class=\"y-labels\" aria-hidden=\"true\"><span style=\"bottom:100%\">{1}</span><span "
      "style=\"bottom:0%\">0</span></div>\n"
      "<svg viewBox=\"0 0 {2} 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{0}: at most {1} "
      "{3} of the same {4}\">",
      escape(chart.title), count_text(most), count, escape(chart.count_name), escape(chart.size_name));
  for (std::size_t i = 0; i < count; ++i) {
    const double height = 100 * chart.counts[i] / most;
    html += fmt::format(
        "<rect class=\"block c0\" x=\"{}\" y=\"{}\" width=\".86\" height=\"{}\"><title>{}: {} "
        "{}</title></rect>",
        trace::coordinate(static_cast<double>(i) + 0.07), trace::coordinate(100 - height),
        trace::coordinate(height), escape(chart.labels[i]), count_text(chart.counts[i]),
        escape(chart.count_name));
  }
  html += "</svg>\n<div class=\"x-labels\" aria-hidden=\"true\">";
  for (const std::size_t i : some_of(count, 8))
    html += fmt::format("<span style=\"left:{}%\">{}</span>",
                        trace::coordinate(100 * (static_cast<double>(i) + 0.5) / static_cast<double>(count)),
                        escape(chart.marks[i]));
  html += fmt::format("</div>\n<div class=\"x-name\" aria-hidden=\"true\">{}</div></div>\n",
                      escape(chart.size_name));
  Table table{.caption = chart.title, .header = {chart.size_name, chart.count_name}, .rows = {}};
  for (std::size_t i = 0; i < count; ++i)
    table.rows.push_back({chart.labels[i], count_text(chart.counts[i])});
  return html + note_html(chart.note) + folded_table_html(table) + "</figure>\n";
}

std::string_view color_of(trace::Category category) {
  return trace::class_of(category);
}

}  // namespace plenum::report
