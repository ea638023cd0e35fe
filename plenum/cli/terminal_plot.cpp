#include "plenum/cli/terminal_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "plenum/base/check.h"

namespace plenum::cli {
namespace {

constexpr int kLabelColumns = 6;
constexpr int kStepsPerRow = 8;
constexpr std::array<std::string_view, kStepsPerRow + 1> kBlocks = {" ", "▁", "▂", "▃", "▄",
                                                                    "▅", "▆", "▇", "█"};

/// 3815044 -> "3.8M".
std::string short_count(double count) {
  constexpr std::array<std::string_view, 7> kSuffixes = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t suffix = 0;
  while (count >= 999.5 && suffix + 1 < kSuffixes.size()) {
    count /= 1000;
    ++suffix;
  }
  return fmt::format("{:.{}f}{}", count, suffix > 0 && count < 9.95 ? 1 : 0, kSuffixes[suffix]);
}

/// The lengths of the histogram laid out over columns.
struct Columns {
  std::int64_t longest = 0;
  int count = 0;

  /// The first length of `column`; that of `count` lies just beyond the last.
  std::int64_t first_length(int column) const { return 1 + longest * column / count; }
};

/// As many columns as fit, and for few lengths a whole number of columns each.
Columns lay_out(std::int64_t longest, int available) {
  const auto columns_per_length = static_cast<int>(std::max<std::int64_t>(available / longest, 1));
  return {longest, longest <= available ? static_cast<int>(longest) * columns_per_length : available};
}

/// The mean count of the lengths in each column: sums would show how many lengths share a column.
std::vector<double> bar_heights(const packing::LengthHistogram& histogram, const Columns& columns) {
  std::vector<double> bars;
  for (int column = 0; column < columns.count; ++column) {
    const std::int64_t begin = columns.first_length(column);
    const std::int64_t end = std::max(columns.first_length(column + 1), begin + 1);
    const auto at = [&](std::int64_t length) { return histogram.counts.begin() + length; };
    const auto sum = static_cast<double>(std::accumulate(at(begin), at(end), std::uint64_t{0}));
    bars.push_back(sum / static_cast<double>(end - begin));
  }
  return bars;
}

/// Numbers under the axis at its ends and quarters, left out where they would touch or repeat.
std::string axis_labels(const Columns& columns) {
  std::string line(static_cast<std::size_t>(columns.count), ' ');
  std::size_t free_from = 0;
  std::int64_t previous = 0;
  const std::string last = fmt::format("{}", columns.longest);
  const std::size_t last_begin = line.size() - std::min(line.size(), last.size());
  for (int quarter = 0; quarter < 4; ++quarter) {
    const int column = columns.count * quarter / 4;
    const std::int64_t length = columns.first_length(column);
    if (length == columns.longest || length == previous) continue;
    previous = length;
    const std::string label = fmt::format("{}", length);
    const auto begin = static_cast<std::size_t>(column);
    if (begin < free_from || begin + label.size() + 1 > last_begin) continue;
    line.replace(begin, label.size(), label);
    free_from = begin + label.size() + 1;
  }
  return line.replace(last_begin, std::string::npos, last);
}

/// Dots of Braille characters, two columns and four rows in each.
class DotGrid {
 public:
  DotGrid(int columns, int rows)
      : columns_(columns), cells_(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows)) {}

  /// Counted in dots, from the left and from the top.
  void set(int x, int y) {
    constexpr std::array<std::array<std::uint8_t, 2>, 4> kBits = {
        {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    const auto cell = static_cast<std::size_t>(y / 4 * columns_ + x / 2);
    cells_[cell] |= kBits[static_cast<std::size_t>(y % 4)][static_cast<std::size_t>(x % 2)];
  }
  std::string row(int row) const {
    std::string text;
    std::size_t used = 0;
    for (int column = 0; column < columns_; ++column) {
      const std::uint8_t dots = cells_[static_cast<std::size_t>(row * columns_ + column)];
      if (dots == 0) {
        text += ' ';
        continue;
      }
      // U+2800 and the dots, as UTF-8.
      text += static_cast<char>(0xE2);
      text += static_cast<char>(0xA0 | dots >> 6);
      text += static_cast<char>(0x80 | (dots & 0x3F));
      used = text.size();
    }
    return text.substr(0, used);
  }

 private:
  int columns_;
  std::vector<std::uint8_t> cells_;
};

/// The mean y of the points in each of `count` columns of the same width; nothing where there are none.
std::vector<std::optional<double>> column_means(const std::vector<CurvePoint>& points, int count) {
  const double first = points.front().x;
  const double length = std::max(points.back().x - first, 1e-300);
  std::vector<double> sums(static_cast<std::size_t>(count));
  std::vector<double> counts(sums.size());
  for (const CurvePoint& point : points) {
    const auto column = static_cast<std::size_t>(
        std::clamp(static_cast<int>((point.x - first) / length * count), 0, count - 1));
    sums[column] += point.y;
    ++counts[column];
  }
  std::vector<std::optional<double>> means(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (counts[i] > 0) means[i] = sums[i] / counts[i];
  }
  return means;
}

/// Draws from the value of each column to that of the next one that has any.
void draw_line(DotGrid& grid, const std::vector<std::optional<double>>& values, double least, double scale) {
  const auto row_of = [&](double value) { return static_cast<int>(std::lround((value - least) * scale)); };
  int last_x = -1;
  int last_y = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    const int x = static_cast<int>(i);
    const int y = row_of(*values[i]);
    if (last_x < 0) grid.set(x, y);
    const int num_dots = last_x < 0 ? 0 : std::max(x - last_x, std::abs(y - last_y));
    for (int dot = 1; dot <= num_dots; ++dot)
      grid.set(last_x + (x - last_x) * dot / num_dots, last_y + (y - last_y) * dot / num_dots);
    last_x = x;
    last_y = y;
  }
}

}  // namespace

std::string draw_curve(const std::vector<CurvePoint>& points, int width, int height) {
  base::check(width >= 24 && height >= 2, "a plot needs room: width={} height={}", width, height);
  if (points.empty()) return "";
  const int columns = width - kLabelColumns - 2;
  const std::vector<std::optional<double>> means = column_means(points, 2 * columns);
  double least = std::numeric_limits<double>::infinity();
  double greatest = -least;
  for (const std::optional<double>& mean : means) {
    if (!mean) continue;
    least = std::min(least, *mean);
    greatest = std::max(greatest, *mean);
  }
  DotGrid grid(columns, height);
  const double range = greatest - least;
  // The greatest value lies at the top, which is the first row of dots.
  draw_line(grid, means, greatest, range > 0 ? -(4 * height - 1) / range : 0);
  std::string plot;
  for (int row = 0; row < height; ++row) {
    const bool is_labelled = row == 0 || row == height - 1;
    const std::string label = is_labelled ? fmt::format("{:.4g}", row == 0 ? greatest : least) : "";
    plot += fmt::format("{:>{}} {}{}\n", label, kLabelColumns, is_labelled ? "┤" : "│", grid.row(row));
  }
  std::string axis;
  for (int column = 0; column < columns; ++column) axis += "─";
  const std::string first = short_count(points.front().x);
  const std::string last = short_count(points.back().x);
  plot += fmt::format("{:>{}} └{}\n", "", kLabelColumns, axis);
  plot += fmt::format("{:>{}}  {}{:>{}}\n", "", kLabelColumns, first, last,
                      columns - static_cast<int>(first.size()));
  return plot;
}

std::string draw_histogram(const packing::LengthHistogram& histogram, int width, int height) {
  base::check(width >= 24 && height >= 2, "a plot needs room: width={} height={}", width, height);
  const std::int64_t longest = histogram.longest();
  if (longest == 0) return "";
  const Columns columns = lay_out(longest, width - kLabelColumns - 2);
  const std::vector<double> bars = bar_heights(histogram, columns);
  const double highest = *std::max_element(bars.begin(), bars.end());

  std::string plot;
  for (int row = height - 1; row >= 0; --row) {
    const double top = highest * std::pow(static_cast<double>(row + 1) / height, 2);
    const bool is_labelled = (height - 1 - row) % 2 == 0;
    plot +=
        fmt::format("{:>{}} {}", is_labelled ? short_count(top) : "", kLabelColumns, is_labelled ? "┤" : "│");
    std::string line;
    for (const double bar : bars) {
      const double steps = std::sqrt(bar / highest) * height * kStepsPerRow;
      // What occurs at all is seen.
      const double shown = bar > 0 ? std::max(steps, 1.0) : 0;
      const int level =
          std::clamp(static_cast<int>(std::lround(shown)) - row * kStepsPerRow, 0, kStepsPerRow);
      line += kBlocks[static_cast<std::size_t>(level)];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    plot += line + "\n";
  }
  std::string axis;
  for (int column = 0; column < columns.count; ++column) axis += "─";
  plot += fmt::format("{:>{}} └{}\n", "", kLabelColumns, axis);
  plot += fmt::format("{:>{}}  {}\n", "", kLabelColumns, axis_labels(columns));
  return plot;
}

}  // namespace plenum::cli
