#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plenum::control {

/// The processes of one run on this node, each a rank.
struct ProcessLaunch {
  using Milliseconds = std::chrono::milliseconds;
  using Variable = std::pair<std::string, std::string>;

  std::vector<std::string>
      command;  ///< the path of a program, or a name to be found in PATH, and its arguments
  std::uint32_t num_processes = 1;
  /// What the processes inherit, as "NAME=value". Beside it each gets the variables that read_launch() reads,
  /// with a new secret at every start.
  std::vector<std::string> environment = {};
  /// What one process gets beside these, or in place of them. May be empty.
  std::function<std::vector<Variable>(std::uint32_t rank)> variables_of = {};
  /// The one device that each process sees, as CUDA_VISIBLE_DEVICES. Empty: that variable is left alone.
  std::vector<std::string> devices = {};
  /// The file to which the output and the errors of a process are appended. Rank 0 has none: it keeps the
  /// launcher's.
  std::function<std::string(std::uint32_t rank)> log_of;
  /// Lines for people: who ended how, and that the processes are started again.
  std::function<void(std::string_view line)> tell;

  /// How often all processes are started again after a failure: one that ends non-zero, but for
  /// `user_error_code`, which the next start would end with again, and `stopped_code`, which says that the
  /// run was asked to stop.
  std::uint32_t num_restarts = 0;
  int user_error_code = 2;
  int stopped_code = 85;

  /// How long the others have after the first failure to say what they saw, then to follow SIGTERM.
  Milliseconds grace{40'000};
  Milliseconds kill_after{10'000};
};

/// Starts the processes and waits until all have ended. Returns how the run ended, as a shell would: 0, or
/// the exit code of the process that failed first, or 128 and the signal that killed it.
///
/// SIGTERM, SIGINT, SIGHUP and SIGUSR1 to this process go to all of them, but for a Ctrl-C, which the
/// terminal sends to all by itself; a signal that this process was started to ignore stays ignored. After one
/// of them nothing is started again. Processes that outlive this one are killed by the system.
///
/// To be called before other threads are started: they would get the signals instead. Throws UserError where
/// a process cannot be started.
int launch_processes(const ProcessLaunch& launch);

}  // namespace plenum::control
