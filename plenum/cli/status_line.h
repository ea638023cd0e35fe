#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "plenum/cli/terminal.h"

namespace plenum::cli {

/// The line that says where a long command stands: redrawn up to ten times a second on a terminal; elsewhere
/// a line of its own every ten seconds.
class StatusLine {
 public:
  /// Borrows `stream`.
  explicit StatusLine(std::FILE* stream);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// The columns that a line may fill.
  int width() const { return terminal_of(stream_).width - 1; }
  bool is_terminal() const { return terminal_.is_terminal; }
  bool has_color() const { return terminal_.has_color; }

  /// Whether enough time has passed since the last line.
  bool is_due() const;
  /// Counts the time to the next line from now on.
  void restart();
  void show(std::string_view line);
  /// Removes the line where it stands on a terminal.
  void erase();
  /// Prints a line that stays.
  void note(std::string_view line);

 private:
  using Clock = std::chrono::steady_clock;

  std::FILE* stream_;
  Terminal terminal_;
  bool is_shown_ = false;  ///< on the current line of a terminal
  Clock::time_point last_shown_ = Clock::now();
};

}  // namespace plenum::cli
