#include "plenum/control/child_process.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plenum/base/check.h"
#include "plenum/base/system_call.h"
#include "plenum/control/descriptor.h"

namespace plenum::control {
namespace {

/// The texts as exec wants them. Borrows them.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// What the new process needs, made before it exists: between fork and exec nothing may allocate or lock.
struct Prepared {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  const sigset_t* signal_mask;
  int input = -1;  ///< -1: as this process has it
  int output = -1;
  int reason = -1;  ///< where it says why it could not start
  pid_t parent = -1;
};

/// Becomes the program, or ends. Runs in the new process.
void become(const Prepared& prepared) {
  // Where the parent died before it was asked to take this process with it, the process has another parent.
  const bool is_bound = ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == prepared.parent;
  const bool is_redirected = (prepared.input < 0 || ::dup2(prepared.input, STDIN_FILENO) >= 0) &&
                             (prepared.output < 0 || (::dup2(prepared.output, STDOUT_FILENO) >= 0 &&
                                                      ::dup2(prepared.output, STDERR_FILENO) >= 0));
  if (is_bound && is_redirected) {
    ::pthread_sigmask(SIG_SETMASK, prepared.signal_mask, nullptr);
    ::execvpe(prepared.arguments.front(), prepared.arguments.data(), prepared.environment.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(prepared.reason, &error, sizeof error);
  ::kill(::getpid(), SIGKILL);
}

}  // namespace

std::string end_text(const ProcessEnd& end) {
  if (end.signal == 0) return fmt::format("exit code {}", end.code);
  return fmt::format("signal {} ({})", end.signal, ::strsignal(end.signal));
}

ChildProcess::ChildProcess(const Start& start) {
  base::require(!start.command.empty(), "there is no program to start");
  Descriptor input;
  Descriptor output;
  if (!start.log.empty()) {
    input = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    output = Descriptor(::open(start.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    base::require_call(input.is_open() && output.is_open(), "cannot write {}", start.log);
  }
  int ends[2] = {};
  base::require_call(::pipe2(ends, O_CLOEXEC) == 0, "cannot start {}", start.command.front());
  const Descriptor reason(ends[0]);
  Descriptor reason_of_child(ends[1]);
  const Prepared prepared{.arguments = pointers_to(start.command),
                          .environment = pointers_to(start.environment),
                          .signal_mask = &start.signal_mask,
                          .input = input.get(),
                          .output = output.get(),
                          .reason = reason_of_child.get(),
                          .parent = ::getpid()};
  process_ = ::fork();
  base::require_call(process_ >= 0, "cannot start {}", start.command.front());
  if (process_ == 0) become(prepared);
  // The pipe closes by itself when the program begins.
  reason_of_child.close();
  int error = 0;
  ssize_t count = -1;
  do {
    count = ::read(reason.get(), &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  if (count != sizeof error) return;
  ::waitpid(process_, nullptr, 0);
  base::fail("cannot start {}: {}", start.command.front(), std::strerror(error));
}

ChildProcess::~ChildProcess() {
  if (process_ < 0 || end_) return;
  send(SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)), end_(other.end_) {}

const std::optional<ProcessEnd>& ChildProcess::look() {
  int status = 0;
  if (end_ || ::waitpid(process_, &status, WNOHANG) != process_) return end_;
  if (WIFEXITED(status)) {
    end_ = ProcessEnd{.code = WEXITSTATUS(status)};
  } else {
    end_ = ProcessEnd{.code = 128 + WTERMSIG(status), .signal = WTERMSIG(status)};
  }
  return end_;
}

void ChildProcess::send(int signal) const {
  if (process_ > 0 && !end_) ::kill(process_, signal);
}

}  // namespace plenum::control
