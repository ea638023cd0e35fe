#include "plenum/trace/text_drawing.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plenum/trace/cell_sampling.h"
#include "plenum/trace/palette.h"
#include "plenum/trace/printable.h"
#include "plenum/trace/process_rows.h"
#include "plenum/trace/time_axis.h"

namespace plenum::trace {
namespace {

constexpr std::size_t kLeastTextWidth = 48;
constexpr std::size_t kMostLabelColumns = 20;
constexpr std::size_t kColumnsPerTick = 10;
constexpr int kNoColor = -1;
constexpr int kTextColor = 16;  // black

/// One column of a row.
struct Glyph {
  std::string_view text = " ";
  int foreground = kNoColor;
  int background = kNoColor;
};

/// The first `width` characters.
std::string_view first_columns(std::string_view text, std::size_t width) {
  std::size_t columns = 0;
  std::size_t bytes = 0;
  for (; bytes < text.size(); ++bytes) {
    const bool begins = (static_cast<unsigned char>(text[bytes]) & 0xC0) != 0x80;
    if (begins && columns++ == width) break;
  }
  return text.substr(0, bytes);
}

/// Cuts, with "…" where something is left out, or fills to exactly `width` columns.
std::string fit(std::string_view text, std::size_t width) {
  const std::size_t columns = num_columns(text);
  if (columns > width) return std::string(first_columns(text, width - 1)) + "…";
  return std::string(text) + std::string(width - columns, ' ');
}

void append_color(std::string& out, int foreground, int background) {
  out += "\x1b[0";
  if (foreground != kNoColor) out += fmt::format(";38;5;{}", foreground);
  if (background != kNoColor) out += fmt::format(";48;5;{}", background);
  out += 'm';
}

void append_glyphs(std::string& out, const std::vector<Glyph>& glyphs) {
  int foreground = kNoColor;
  int background = kNoColor;
  for (const Glyph& glyph : glyphs) {
    if (glyph.foreground != foreground || glyph.background != background) {
      foreground = glyph.foreground;
      background = glyph.background;
      append_color(out, foreground, background);
    }
    out += glyph.text;
  }
  if (foreground != kNoColor || background != kNoColor) append_color(out, kNoColor, kNoColor);
}

constexpr std::array<std::string_view, 10> kDigits = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};

std::string number_text(const Span& span) {
  return span.micro_batch < 0 ? "" : fmt::format("{}", span.micro_batch);
}

void put_number(const std::string& number, std::size_t column, std::vector<Glyph>& glyphs) {
  for (std::size_t i = 0; i < number.size(); ++i) {
    glyphs[column + i].text = kDigits[static_cast<std::size_t>(number[i] - '0')];
  }
}

/// A block is its letter, its micro-batch, and a line to its end.
std::vector<Glyph> plain_glyphs(std::span<const Span> spans, const std::vector<std::uint32_t>& cells) {
  std::vector<Glyph> glyphs(cells.size(), {.text = "·"});
  for (std::size_t begin = 0, end = 0; begin < cells.size(); begin = end) {
    while (end < cells.size() && cells[end] == cells[begin]) ++end;
    if (cells[begin] == kIdleCell) continue;
    const Span& span = spans[cells[begin]];
    for (std::size_t column = begin; column < end; ++column) glyphs[column].text = "─";
    glyphs[begin].text = style_of(span.category).letter;
    const std::string number = number_text(span);
    if (number.size() < end - begin) put_number(number, begin + 1, glyphs);
  }
  return glyphs;
}

/// The color of every cell: of two blocks of a category that follow each other the second is darker, unless
/// they are fillers, which are many and small.
std::vector<int> colors_of(std::span<const Span> spans, const std::vector<std::uint32_t>& cells) {
  std::vector<int> colors;
  std::uint32_t previous = kIdleCell;
  bool is_darker = false;
  for (const std::uint32_t cell : cells) {
    if (cell == kIdleCell) {
      colors.push_back(kNoColor);
      continue;
    }
    const CategoryStyle& style = style_of(spans[cell].category);
    if (cell != previous) {
      const bool repeats = previous != kIdleCell && spans[previous].category == spans[cell].category;
      is_darker = repeats && !is_darker && style.hatch == Hatch::None;
      previous = cell;
    }
    colors.push_back(is_darker ? style.terminal_shade : style.terminal_color);
  }
  return colors;
}

/// A column of which the left half shows one thing and the right half another.
Glyph halves(int left, int right) {
  if (left == right) return {.text = " ", .foreground = kNoColor, .background = left};
  if (left == kNoColor) return {.text = "▐", .foreground = right, .background = kNoColor};
  return {.text = "▌", .foreground = left, .background = right};
}

/// A block is a field of its colour, to half a column, with its micro-batch in the middle.
std::vector<Glyph> colored_glyphs(std::span<const Span> spans, const std::vector<std::uint32_t>& half_cells) {
  const std::vector<int> colors = colors_of(spans, half_cells);
  std::vector<Glyph> glyphs;
  for (std::size_t half = 0; half + 1 < colors.size(); half += 2) {
    glyphs.push_back(halves(colors[half], colors[half + 1]));
  }
  for (std::size_t begin = 0, end = 0; begin < half_cells.size(); begin = end) {
    while (end < half_cells.size() && half_cells[end] == half_cells[begin]) ++end;
    if (half_cells[begin] == kIdleCell) continue;
    const std::size_t first = (begin + 1) / 2;
    const std::size_t last = end / 2;
    const Span& span = spans[half_cells[begin]];
    const std::string number = number_text(span);
    // Fillers are many and small: numbers would only clutter them.
    const std::size_t num_free = style_of(span.category).hatch == Hatch::None ? 1 : 6;
    if (number.empty() || end - begin < 2 * number.size() + num_free) continue;
    const std::size_t column = first + (last - first - number.size()) / 2;
    put_number(number, column, glyphs);
    for (std::size_t i = 0; i < number.size(); ++i) glyphs[column + i].foreground = kTextColor;
  }
  return glyphs;
}

class TextDrawing {
 public:
  TextDrawing(const Timeline& timeline, const TextDrawingOptions& options)
      : timeline_(timeline),
        options_(options),
        rows_(process_rows(timeline)),
        width_(std::max(options.width, kLeastTextWidth)),
        from_(std::max(0.0, options.from_seconds)),
        to_(std::min(options.to_seconds, timeline.end_seconds - timeline.begin_seconds)) {
    for (const ProcessRow& row : rows_) {
      label_width_ = std::max(label_width_, process_label(row).size());
      if (options.tracks == TextDrawingOptions::Tracks::Computation) continue;
      for (std::size_t i = 1; i < row.tracks.size(); ++i) {
        label_width_ = std::max(label_width_, num_columns(track_label(row.tracks[i])));
      }
    }
    label_width_ = std::min(label_width_, kMostLabelColumns);
    chart_width_ = width_ - label_width_ - kNoteWidth - 3;
  }

  std::string draw() {
    add_line(title());
    if (timeline_.step_begin_seconds.size() > 1) add_line(margin() + " " + steps_line());
    const std::size_t num_drawn = std::min(rows_.size(), options_.most_processes);
    for (std::size_t i = 0; i < num_drawn; ++i) add_process(rows_[i]);
    if (num_drawn < rows_.size()) add_line(fmt::format("… {} more ranks", rows_.size() - num_drawn));
    add_axis();
    add_legend();
    return std::move(text_);
  }

 private:
  static constexpr std::size_t kNoteWidth = 6;

  static std::string process_label(const ProcessRow& row) { return fmt::format("rank {}", row.process); }
  std::string track_label(const TrackSpans& track) const {
    return "  " + printable(timeline_.tracks[track.track].name);
  }
  std::string margin() const { return std::string(label_width_ + 1, ' '); }
  bool is_colored() const { return options_.color == TextDrawingOptions::Color::Yes; }

  void add_line(std::string_view line) { text_ += fit(line, width_) + "\n"; }

  std::string title() const {
    const double length = timeline_.end_seconds - timeline_.begin_seconds;
    const std::size_t num_steps = timeline_.step_begin_seconds.size();
    std::string title =
        fmt::format("{}{}{} rank{}, {} step{}, {}", printable(timeline_.title),
                    timeline_.title.empty() ? "" : ": ", rows_.size(), rows_.size() == 1 ? "" : "s",
                    num_steps, num_steps == 1 ? "" : "s", format_duration(length));
    if (from_ > 0 || to_ < length) {
      title += fmt::format(" (from {} to {})", format_duration(from_), format_duration(to_));
    }
    return title;
  }

  /// The column of a time counted from the beginning of the timeline; none outside of what is shown.
  std::size_t column_of(double seconds) const {
    if (seconds < from_ || to_ <= from_) return chart_width_;
    return static_cast<std::size_t>((seconds - from_) / (to_ - from_) * static_cast<double>(chart_width_) +
                                    1e-6);
  }

  /// Writes labels from given columns on; one that would run into its predecessor is left out.
  std::string label_line(const std::vector<std::pair<std::size_t, std::string>>& labels) const {
    std::string line;
    std::size_t next = 0;
    for (const auto& [column, label] : labels) {
      if (column < next || column + num_columns(label) > chart_width_) continue;
      line += std::string(column - num_columns(line), ' ') + label;
      next = num_columns(line) + 1;
    }
    return line;
  }

  std::string steps_line() const {
    std::vector<std::pair<std::size_t, std::string>> labels;
    for (std::size_t step = 0; step < timeline_.step_begin_seconds.size(); ++step) {
      labels.emplace_back(column_of(timeline_.step_begin_seconds[step] - timeline_.begin_seconds),
                          fmt::format("▏step {}", step));
    }
    return label_line(labels);
  }

  void add_process(const ProcessRow& row) {
    add_track(process_label(row), row.tracks.front());
    if (options_.tracks == TextDrawingOptions::Tracks::Computation) return;
    for (std::size_t i = 1; i < row.tracks.size(); ++i) add_track(track_label(row.tracks[i]), row.tracks[i]);
  }

  void add_track(const std::string& label, const TrackSpans& track) {
    const double from = timeline_.begin_seconds + from_;
    const double to = timeline_.begin_seconds + to_;
    const std::size_t num_cells = is_colored() ? 2 * chart_width_ : chart_width_;
    const std::vector<std::uint32_t> cells = sample_cells(track.spans, from, to, num_cells);
    for (const std::uint32_t cell : cells) {
      if (cell != kIdleCell) is_shown_[static_cast<std::size_t>(track.spans[cell].category)] = true;
    }
    text_ += fit(label, label_width_) + " │";
    append_glyphs(text_,
                  is_colored() ? colored_glyphs(track.spans, cells) : plain_glyphs(track.spans, cells));
    const double share = to > from ? busy_seconds(track.spans, from, to) / (to - from) : 0;
    text_ += fmt::format("│{:>{}}\n", fmt::format("{:.1f}%", 100 * share), kNoteWidth);
  }

  void add_axis() {
    std::vector<std::pair<std::size_t, std::string>> labels;
    std::vector<std::string_view> ruler(chart_width_, "─");
    for (const Tick& tick : round_ticks(from_, to_, chart_width_ / kColumnsPerTick)) {
      const std::size_t column = column_of(tick.seconds);
      if (column >= chart_width_) continue;
      ruler[column] = "┴";
      labels.emplace_back(column, tick.label);
    }
    std::string line = margin() + "└";
    for (const std::string_view mark : ruler) line += mark;
    add_line(line + "┘");
    const std::string values = label_line(labels);
    const std::size_t rest = chart_width_ + 1 - num_columns(values);
    add_line(margin() + " " + values + std::string(rest, ' ') + std::string(unit_for(to_).name));
  }

  void add_legend() {
    std::string line;
    std::size_t columns = 0;
    const auto add_entry = [&](std::string_view mark, std::string_view name, int background) {
      const std::size_t entry_columns = num_columns(mark) + 1 + name.size();
      if (columns > 0 && columns + 3 + entry_columns > width_) {
        text_ += line + "\n";
        line.clear();
        columns = 0;
      }
      if (columns > 0) {
        line += "   ";
        columns += 3;
      }
      append_glyphs(line, {{.text = mark, .foreground = kNoColor, .background = background}});
      line += fmt::format(" {}", name);
      columns += entry_columns;
    };
    for (std::size_t i = 0; i < kNumCategories; ++i) {
      const auto category = static_cast<Category>(i);
      if (!is_shown_[i]) continue;
      if (is_colored()) {
        add_entry("  ", category_name(category), style_of(category).terminal_color);
      } else {
        add_entry(style_of(category).letter, category_name(category), kNoColor);
      }
    }
    if (!is_colored()) add_entry("·", "idle", kNoColor);
    text_ += line + "\n";
  }

  const Timeline& timeline_;
  const TextDrawingOptions& options_;
  std::vector<ProcessRow> rows_;
  std::size_t width_;
  double from_;
  double to_;
  std::size_t label_width_ = 0;
  std::size_t chart_width_ = 0;
  std::array<bool, kNumCategories> is_shown_ = {};
  std::string text_;
};

}  // namespace

std::string draw_text(const Timeline& timeline, const TextDrawingOptions& options) {
  return TextDrawing(timeline, options).draw();
}

}  // namespace plenum::trace
