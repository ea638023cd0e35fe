#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plenum::report {

/// Text of a run as HTML shows it as it is, in an element or an attribute's quotation marks.
std::string escape(std::string_view text);

/// JSON as it may stand in a script element.
std::string script_json(std::string json);

/// Numbers of a chart as JSON, with so many digits.
std::string json_numbers(const std::vector<double>& numbers, int digits = 6);

/// A table. Cells are text, the first of a row is its heading; columns of numbers are set right.
struct Table {
  std::string caption;  ///< for those who hear the page
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  enum class Cells { Numbers, Texts } cells = Cells::Numbers;
};
std::string table_html(const Table& table);

/// A table behind a chart, to be unfolded.
std::string folded_table_html(const Table& table);

/// A part of the page with its heading.
std::string section_html(std::string_view id, std::string_view title, std::string_view content);

/// Charts beside each other where there is room; the first as wide as all, if that is asked for.
enum class FirstChart { AsWideAsAll, AsOthers };
std::string charts_html(const std::vector<std::string>& charts, FirstChart first = FirstChart::AsOthers);

/// A sentence for what there is nothing to show of.
std::string missing_html(std::string_view text);

/// A number with a name, large.
struct Tile {
  std::string name;
  std::string value;
  std::string note = {};  ///< small, below
};
std::string tiles_html(const std::vector<Tile>& tiles);

/// "12.3 %".
std::string percent_text(double share);
/// A number of any size with about four digits: "12,345", "0.0123", "1.2e-05".
std::string number_text(double number);
/// A whole number, with commas.
std::string count_text(double count);
/// "84.2 MB".
std::string bytes_text(double bytes);
/// "12.3 GFLOP/s".
std::string flops_text(double flops_per_second);

}  // namespace plenum::report
