#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plenum/control/descriptor.h"
#include "plenum/control/network_address.h"

#include "tests/control/planes.h"
#include "tests/support/temporary_directory.h"

namespace plenum::control {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A rank that is a process: says "ready" when all are there, then what becomes of it: a failure, as
/// failure_text() has it, or "bye" after so long.
class RankProcess {
 public:
  RankProcess(std::uint32_t rank, std::uint32_t num_ranks, const ControlOptions& options,
              std::chrono::milliseconds life = kLongTime) {
    int ends[2] = {};
    if (::pipe(ends) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      ::close(ends[0]);
      live(rank, num_ranks, options, life, ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    output_ = Descriptor(ends[0]);
  }
  ~RankProcess() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  void send(int signal) const { ::kill(process_, signal); }
  /// The next line that it says; empty once it has ended, or says nothing for a long time.
  std::string next_line() {
    std::string line;
    char c = 0;
    while (wait_ready(output_.get(), POLLIN, std::chrono::steady_clock::now() + kLongTime) &&
           ::read(output_.get(), &c, 1) == 1 && c != '\n')
      line += c;
    return line;
  }

 private:
  static void say(int output, std::string line) {
    line += '\n';
    [[maybe_unused]] const ssize_t ignored = ::write(output, line.data(), line.size());
  }
  static void live(std::uint32_t rank, std::uint32_t num_ranks, const ControlOptions& options,
                   std::chrono::milliseconds life, int output) {
    try {
      FailureLog failures;
      ControlPlane plane(launch_of(rank, num_ranks), options, failures.listener());
      plane.say("step 3 of rank " + std::to_string(rank));
      plane.barrier();
      std::this_thread::sleep_for(3 * options.heartbeat_interval);  // so that all know what all do
      say(output, "ready");
      const auto until = std::chrono::steady_clock::now() + life;
      while (failures.all().empty() && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      for (const RankFailure& failure : failures.all()) say(output, failure_text(failure));
      if (!failures.all().empty()) return;
      plane.goodbye();
      say(output, "bye");
    } catch (const std::exception& error) {
      say(output, std::string("error: ") + error.what());
    }
  }

  pid_t process_ = -1;
  Descriptor output_;
};

using Processes = std::vector<std::unique_ptr<RankProcess>>;

Processes start(std::uint32_t num_ranks, const ControlOptions& options,
                std::chrono::milliseconds life = kLongTime) {
  Processes processes;
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank)
    processes.push_back(std::make_unique<RankProcess>(rank, num_ranks, options, life));
  for (const auto& process : processes) EXPECT_EQ(process->next_line(), "ready");
  return processes;
}

std::string name_of(std::uint32_t rank) {
  return "rank " + std::to_string(rank) + " on " + host_name() + ": ";
}

TEST(ProcessDeath, OfOneRankIsKnownToAllOthersByItsConnection) {
  const test::TemporaryDirectory directory;
  for (const std::uint32_t killed : {0U, 2U}) {
    const Processes processes = start(3, quick_options(directory.path()));
    processes[killed]->send(SIGKILL);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      if (rank == killed) continue;
      const std::string line = processes[rank]->next_line();
      EXPECT_THAT(line, StartsWith(name_of(killed) + "the process ended or was killed"));
      EXPECT_THAT(line, HasSubstr("its last action: step 3 of rank " + std::to_string(killed)));
      EXPECT_THAT(line,
                  HasSubstr("rank " + std::to_string(rank) + ": step 3 of rank " + std::to_string(rank)));
      EXPECT_EQ(processes[rank]->next_line(), "") << "told twice";
    }
  }
}

TEST(ProcessDeath, IsWhatAStoppedRankIsTakenForByAllOthers) {
  const test::TemporaryDirectory directory;
  for (const std::uint32_t stopped : {0U, 1U}) {
    ControlOptions options = quick_options(directory.path());
    options.dead_after = std::chrono::milliseconds(1500);
    const Processes processes = start(3, options);
    processes[stopped]->send(SIGSTOP);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      if (rank == stopped) continue;
      EXPECT_THAT(processes[rank]->next_line(),
                  StartsWith(name_of(stopped) + "no heartbeat for 1.5 s: the process is stopped"));
    }
    processes[stopped]->send(SIGCONT);
    EXPECT_THAT(processes[stopped]->next_line(), HasSubstr("no heartbeat for 1.5 s"))
        << "once it runs again it learns that the others have given it up";
  }
}

TEST(ProcessDeath, IsNotSeenInAStopThatEndsBeforeTheLimit) {
  const test::TemporaryDirectory directory;
  const ControlOptions options = quick_options(directory.path());
  const Processes processes = start(3, options, std::chrono::milliseconds(3000));
  for (const std::uint32_t stopped : {0U, 2U}) {
    processes[stopped]->send(SIGSTOP);
    std::this_thread::sleep_for(8 * options.heartbeat_interval);
    processes[stopped]->send(SIGCONT);
  }
  for (const auto& process : processes) EXPECT_EQ(process->next_line(), "bye");
}

TEST(ProcessDeath, IsNotSeenWhereAllWereStopped) {
  const test::TemporaryDirectory directory;
  ControlOptions options = quick_options(directory.path());
  options.dead_after = std::chrono::milliseconds(2000);
  const Processes processes = start(2, options, std::chrono::milliseconds(4000));
  for (const auto& process : processes) process->send(SIGSTOP);
  std::this_thread::sleep_for(options.dead_after + std::chrono::milliseconds(500));
  for (const auto& process : processes) process->send(SIGCONT);
  for (const auto& process : processes) EXPECT_EQ(process->next_line(), "bye");
}

}  // namespace
}  // namespace plenum::control
