#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace plenum::control {

/// How a process ended.
struct ProcessEnd {
  int code = 0;    ///< the exit code, or 128 + signal
  int signal = 0;  ///< that killed it; 0 if none did

  bool is_good() const { return code == 0; }
};

/// "exit code 1", "signal 9 (Killed)".
std::string end_text(const ProcessEnd& end);

/// A process that was started from this one, and does not outlive the thread that started it.
class ChildProcess {
 public:
  struct Start {
    std::vector<std::string> command;      ///< its program by path, or by name from PATH
    std::vector<std::string> environment;  ///< "NAME=value", all of it
    std::string log;  ///< where output and errors go, appended; empty: where this process's go
    sigset_t signal_mask;
  };

  /// Throws UserError where it cannot be started.
  explicit ChildProcess(const Start& start);
  /// Kills it if it has not ended.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  /// How it ended, if it has. Does not wait.
  const std::optional<ProcessEnd>& look();
  const std::optional<ProcessEnd>& end() const { return end_; }
  /// Does nothing if it has ended.
  void send(int signal) const;

 private:
  pid_t process_ = -1;
  std::optional<ProcessEnd> end_;
};

}  // namespace plenum::control
