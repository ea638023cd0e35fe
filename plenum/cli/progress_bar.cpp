#include "plenum/cli/progress_bar.h"

#include <algorithm>

#include <fmt/format.h>

#include "plenum/base/units.h"

namespace plenum::cli {
namespace {

constexpr int kWidestBar = 40;
constexpr int kNarrowestBar = 8;

std::string format_rate(const PhaseStatus& status) {
  if (status.unit == "bytes") return fmt::format("{:.1f} MB/s", status.per_second / 1e6);
  return fmt::format("{} {}/s", base::format_count(static_cast<std::uint64_t>(status.per_second)),
                     status.unit);
}

/// Everything behind the bar, most important first.
std::string describe(const PhaseStatus& status) {
  std::string text;
  if (status.total > 0) {
    const double share =
        static_cast<double>(std::min(status.done, status.total)) / static_cast<double>(status.total);
    text += fmt::format("{:3.0f} %", 100 * share);
  } else {
    text += status.unit == "bytes" ? base::format_bytes(status.done)
                                   : fmt::format("{} {}", base::format_count(status.done), status.unit);
  }
  if (status.per_second <= 0) return text;
  text += "  " + format_rate(status);
  if (status.total > status.done) {
    const double seconds = static_cast<double>(status.total - status.done) / status.per_second;
    text += fmt::format("  {} left", base::format_seconds(std::max(1.0, seconds)));
  }
  return text;
}

}  // namespace

std::string draw_bar(double share, int width, bool color) {
  constexpr std::string_view kGreen = "\x1b[32m";
  constexpr std::string_view kPlain = "\x1b[0m";
  const int inside = width - 2;
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * inside);
  return fmt::format("{}[{:=<{}}{:<{}}]{}", color ? kGreen : "", "", full, "", inside - full,
                     color ? kPlain : "");
}

std::string draw_progress(const PhaseStatus& status, int width, bool color) {
  const std::string behind = describe(status);
  const int room = width - static_cast<int>(status.phase.size() + behind.size()) - 6;  // spaces and brackets
  if (status.total == 0 || room < kNarrowestBar) {
    return fmt::format("{}  {}", status.phase, behind)
        .substr(0, static_cast<std::size_t>(std::max(0, width)));
  }
  const int bar = std::min(room, kWidestBar);
  const double share =
      static_cast<double>(std::min(status.done, status.total)) / static_cast<double>(status.total);
  return fmt::format("{}  {}  {}", status.phase, draw_bar(share, bar + 2, color), behind);
}

void ProgressBar::begin(std::string_view phase, std::string_view unit, std::uint64_t total) {
  status_ = {.phase = std::string(phase), .unit = std::string(unit), .total = total};
  advanced_ = false;
  line_.restart();
  if (line_.is_terminal()) draw();
}

void ProgressBar::advance_to(std::uint64_t done) {
  const Clock::time_point now = Clock::now();
  status_.done = done;
  if (!advanced_) {
    advanced_ = true;
    first_time_ = now;
    first_done_ = done;
  }
  if (!line_.is_due()) return;
  const double elapsed = std::chrono::duration<double>(now - first_time_).count();
  if (elapsed > 0) status_.per_second = static_cast<double>(done - first_done_) / elapsed;
  draw();
}

void ProgressBar::warn(std::string_view line) {
  line_.note(fmt::format("warning: {}", line));
}

void WarningsOnly::warn(std::string_view line) {
  say(stream_, fmt::format("warning: {}\n", line));
}

void ProgressBar::draw() {
  line_.show(draw_progress(status_, line_.width(), line_.has_color()));
}

}  // namespace plenum::cli
