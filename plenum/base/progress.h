#pragma once

#include <cstdint>
#include <string_view>

namespace plenum::base {

/// How a long operation tells whoever started it where it stands. The library never prints; the command line
/// draws a bar, tests record, `--quiet` shows warnings alone. Called from one thread at a time.
class Progress {
 public:
  virtual ~Progress() = default;

  /// A new phase begins. `unit` names what is counted ("bytes" is shown as MB/s); total 0 means unknown.
  virtual void begin(std::string_view phase, std::string_view unit, std::uint64_t total) = 0;
  virtual void advance_to(std::uint64_t done) = 0;
  virtual void end() = 0;

  /// A fact worth one line, for instance that an earlier run is resumed.
  virtual void note(std::string_view line) = 0;

  /// What the user may not have meant, for instance that files are skipped. No progress: it is always shown.
  virtual void warn(std::string_view line) = 0;
};

/// Ignores everything.
class SilentProgress final : public Progress {
 public:
  void begin(std::string_view, std::string_view, std::uint64_t) override {}
  void advance_to(std::uint64_t) override {}
  void end() override {}
  void note(std::string_view) override {}
  void warn(std::string_view) override {}
};

}  // namespace plenum::base
