#include "plenum/report/html.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "plenum/base/units.h"
#include "plenum/trace/svg_text.h"

namespace plenum::report {

std::string escape(std::string_view text) {
  return trace::escape_xml(text);
}

std::string script_json(std::string json) {
  // What begins a tag would end the element or a comment in it.
  for (std::size_t at = json.find('<'); at != std::string::npos; at = json.find('<', at))
    json.replace(at, 1, "\\u003c");
  return json;
}

std::string json_numbers(const std::vector<double>& numbers, int digits) {
  std::string text = "[";
  for (const double number : numbers) {
    if (text.size() > 1) text += ',';
    if (std::isfinite(number))
      fmt::format_to(std::back_inserter(text), "{:.{}g}", number, digits);
    else
      text += "null";
  }
  return text + "]";
}

std::string table_html(const Table& table) {
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{0}\"><table "
      "class=\"{1}\"><caption>{0}</caption>",
      escape(table.caption), table.cells == Table::Cells::Numbers ? "numbers" : "texts");
  if (!table.header.empty()) {
    html += "<thead><tr>";
    for (const std::string& name : table.header)
      html += fmt::format("<th scope=\"col\">{}</th>", escape(name));
    html += "</tr></thead>";
  }
  html += "<tbody>";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      html += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", escape(row[i]))
                     : fmt::format("<td>{}</td>", escape(row[i]));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string folded_table_html(const Table& table) {
  return fmt::format("<details class=\"data\"><summary>Numbers</summary>{}</details>\n", table_html(table));
}

std::string section_html(std::string_view id, std::string_view title, std::string_view content) {
  return fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-title\"><h2 id=\"{0}-title\">{1}</h2>\n{2}</section>\n", id,
      title, content);
}

std::string charts_html(const std::vector<std::string>& charts, FirstChart first) {
  std::string html;
  for (std::string chart : charts) {
    constexpr std::string_view kClass = "class=\"chart";
    if (html.empty() && first == FirstChart::AsWideAsAll && !chart.empty())
      chart.insert(chart.find(kClass) + kClass.size(), " first");
    html += chart;
  }
  return html.empty() ? "" : fmt::format("<div class=\"charts\">\n{}</div>\n", html);
}

std::string missing_html(std::string_view text) {
  return fmt::format("<p class=\"missing\">{}</p>\n", escape(text));
}

std::string tiles_html(const std::vector<Tile>& tiles) {
  std::string html = "<dl class=\"tiles\">";
  for (const Tile& tile : tiles) {
    html += fmt::format("<div><dt>{}</dt><dd>{}", escape(tile.name), escape(tile.value));
    if (!tile.note.empty()) html += fmt::format("<small>{}</small>", escape(tile.note));
    html += "</dd></div>";
  }
  return html + "</dl>\n";
}

std::string percent_text(double share) {
  const double percent = 100 * share;
  return fmt::format("{:.{}f} %", percent, std::abs(percent) < 10 ? 2 : 1);
}

std::string number_text(double number) {
  if (!std::isfinite(number)) return "not finite";
  const double size = std::abs(number);
  if (size >= 1e15) return fmt::format("{:.3e}", number);
  if (size >= 10'000 || (size >= 1 && number == std::floor(number)))
    return (number < 0 ? "-" : "") + base::format_count(static_cast<std::uint64_t>(std::llround(size)));
  return fmt::format("{:.4g}", number);
}

namespace {

/// As far as whole numbers go; what is none is 0.
std::uint64_t whole(double count) {
  constexpr double kMost = 1e18;
  return count > 0 ? static_cast<std::uint64_t>(std::llround(std::min(count, kMost))) : 0;
}

}  // namespace

std::string count_text(double count) {
  return base::format_count(whole(count));
}

std::string bytes_text(double bytes) {
  return base::format_bytes(whole(bytes));
}

std::string flops_text(double flops_per_second) {
  const bool is_tera = flops_per_second >= 1e13;
  return fmt::format("{:.1f} {}FLOP/s", flops_per_second / (is_tera ? 1e12 : 1e9), is_tera ? "T" : "G");
}

}  // namespace plenum::report
