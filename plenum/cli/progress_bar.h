#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "plenum/base/progress.h"

namespace plenum::cli {

/// Where a phase stands.
struct PhaseStatus {
  std::string phase;
  std::string unit;         ///< "bytes" gives MB/s
  std::uint64_t total = 0;  ///< 0 if unknown
  std::uint64_t done = 0;
  double per_second = 0;  ///< 0 if not known yet
};

/// One line of at most `width` characters: phase, bar, share, rate and remaining time; as many of them as
/// fit.
std::string draw_progress(const PhaseStatus& status, int width, bool color);

/// Draws progress on a stream: a bar that is redrawn up to ten times a second on a terminal, and elsewhere a
/// line every ten seconds. NO_COLOR turns colour off.
class ProgressBar final : public base::Progress {
 public:
  /// Borrows `stream`.
  explicit ProgressBar(std::FILE* stream);
  ~ProgressBar() override;

  void begin(std::string_view phase, std::string_view unit, std::uint64_t total) override;
  void advance_to(std::uint64_t done) override;
  void end() override;
  void note(std::string_view line) override;

 private:
  using Clock = std::chrono::steady_clock;

  void draw();
  void erase();

  std::FILE* stream_;
  bool is_terminal_;
  bool color_;
  bool drawn_ = false;  ///< a bar stands on the current line
  PhaseStatus status_;
  bool advanced_ = false;
  Clock::time_point first_time_;  ///< of the first advance: a resumed phase does not begin at 0
  std::uint64_t first_done_ = 0;
  Clock::time_point last_draw_;
};

}  // namespace plenum::cli
