#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "plenum/base/progress.h"
#include "plenum/cli/status_line.h"

namespace plenum::cli {

/// Where a phase stands.
struct PhaseStatus {
  std::string phase;
  std::string unit;         ///< "bytes" gives MB/s
  std::uint64_t total = 0;  ///< 0 if unknown
  std::uint64_t done = 0;
  double per_second = 0;  ///< 0 if not known yet
};

/// "[====    ]" of `width` columns, at least 2, in green if `color`: so much of it is filled as `share` says.
std::string draw_bar(double share, int width, bool color);

/// One line of at most `width` characters: phase, bar, share, rate and remaining time; as many of them as
/// fit.
std::string draw_progress(const PhaseStatus& status, int width, bool color);

/// Draws progress on a stream as a StatusLine with a bar. NO_COLOR turns colour off.
class ProgressBar final : public base::Progress {
 public:
  /// Borrows `stream`.
  explicit ProgressBar(std::FILE* stream) : line_(stream) {}

  void begin(std::string_view phase, std::string_view unit, std::uint64_t total) override;
  void advance_to(std::uint64_t done) override;
  void end() override { line_.erase(); }
  void note(std::string_view line) override { line_.note(line); }
  void warn(std::string_view line) override;

 private:
  using Clock = std::chrono::steady_clock;

  void draw();

  StatusLine line_;
  PhaseStatus status_;
  bool advanced_ = false;
  Clock::time_point first_time_;  ///< of the first advance: a resumed phase does not begin at 0
  std::uint64_t first_done_ = 0;
};

/// What --quiet shows: warnings alone.
class WarningsOnly final : public base::Progress {
 public:
  /// Borrows `stream`.
  explicit WarningsOnly(std::FILE* stream) : stream_(stream) {}

  void begin(std::string_view, std::string_view, std::uint64_t) override {}
  void advance_to(std::uint64_t) override {}
  void end() override {}
  void note(std::string_view) override {}
  void warn(std::string_view line) override;

 private:
  std::FILE* stream_;
};

}  // namespace plenum::cli
