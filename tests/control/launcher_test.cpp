#include "plenum/control/launcher.h"

#include <csignal>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A launch of /bin/sh, and what it says.
struct ShellLaunch {
  explicit ShellLaunch(const std::string& script, std::uint32_t num_processes = 3) {
    launch.command = {"/bin/sh", "-c", script};
    launch.num_processes = num_processes;
    launch.environment = {"PATH=/usr/bin:/bin", "DIR=" + directory.path(), "PLENUM_RANK=99"};
    launch.log_of = [this](std::uint32_t rank) { return directory / ("log-" + std::to_string(rank)); };
    launch.tell = [this](std::string_view line) { lines.emplace_back(line); };
    launch.grace = std::chrono::milliseconds(300);
    launch.kill_after = std::chrono::milliseconds(300);
  }
  int run() { return launch_processes(launch); }
  std::string file(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(directory / name).rdbuf();
    return text.str();
  }
  bool has_file(const std::string& name) const { return std::ifstream(directory / name).good(); }

  test::TemporaryDirectory directory;
  ProcessLaunch launch;
  std::vector<std::string> lines;
};

TEST(LaunchProcesses, TellsEachProcessWhoItIs) {
  ShellLaunch shell(
      "echo $PLENUM_RANK of $PLENUM_NUM_RANKS, here $PLENUM_LOCAL_RANK of $PLENUM_NUM_LOCAL_RANKS, "
      "on $CUDA_VISIBLE_DEVICES with $NCCL_X >$DIR/$PLENUM_RANK");
  shell.launch.devices = {"4", "5", "GPU-7"};
  shell.launch.variables_of = [](std::uint32_t rank) {
    return std::vector<ProcessLaunch::Variable>{{"NCCL_X", std::to_string(10 * rank)}};
  };
  EXPECT_EQ(shell.run(), 0);
  EXPECT_EQ(shell.file("0"), "0 of 3, here 0 of 3, on 4 with 0\n");
  EXPECT_EQ(shell.file("2"), "2 of 3, here 2 of 3, on GPU-7 with 20\n");
  EXPECT_THAT(shell.lines, IsEmpty());
}

TEST(LaunchProcesses, GivesAllProcessesOfAStartOneNewSecret) {
  ShellLaunch shell("echo $PLENUM_SECRET >>$DIR/$PLENUM_RANK; exit 1");
  shell.launch.num_restarts = 1;
  EXPECT_EQ(shell.run(), 1);
  EXPECT_EQ(shell.file("0"), shell.file("1"));
  const std::string secrets = shell.file("0");
  ASSERT_EQ(secrets.size(), 2 * 65U);
  EXPECT_NE(secrets.substr(0, 64), secrets.substr(65, 64));
}

TEST(LaunchProcesses, KeepsTheOutputOfOtherRanksInTheirFiles) {
  ShellLaunch shell("[ $PLENUM_RANK = 0 ] || { echo out; echo error >&2; cat; }");
  EXPECT_EQ(shell.run(), 0);
  EXPECT_EQ(shell.file("log-1"), "out\nerror\n");
  EXPECT_FALSE(shell.has_file("log-0"));
}

TEST(LaunchProcesses, ReturnsTheCodeOfTheFirstFailureAndNamesIt) {
  ShellLaunch shell("[ $PLENUM_RANK = 1 ] && exit 7; sleep 0.5; exit 9");
  shell.launch.grace = std::chrono::seconds(60);
  EXPECT_EQ(shell.run(), 7);
  EXPECT_THAT(shell.lines,
              ElementsAre("rank 1 ended with exit code 7; what it said is in " + shell.directory / "log-1"));
}

TEST(LaunchProcesses, ReturnsTheSignalThatKilledAProcess) {
  ShellLaunch shell("[ $PLENUM_RANK = 0 ] && kill -9 $$; sleep 0.2");
  EXPECT_EQ(shell.run(), 137);
  EXPECT_THAT(shell.lines, ElementsAre("rank 0 ended with signal 9 (Killed)"));
}

TEST(LaunchProcesses, GivesTheOthersTimeAfterAFailureAndThenEndsThem) {
  // Rank 1 says what it saw, rank 2 follows SIGTERM, rank 3 does not.
  ShellLaunch shell(
      "case $PLENUM_RANK in 0) exit 3;; 1) sleep 0.1; echo saw it >$DIR/saw;; "
      "2) trap 'echo asked >$DIR/asked; exit 0' TERM; while :; do sleep 0.05; done;; "
      "3) trap '' TERM; echo $$ >$DIR/process; while :; do sleep 0.05; done;; esac",
      4);
  EXPECT_EQ(shell.run(), 3);
  EXPECT_EQ(shell.file("saw"), "saw it\n");
  EXPECT_EQ(shell.file("asked"), "asked\n");
  EXPECT_NE(::kill(std::stoi(shell.file("process")), 0), 0);
}

TEST(LaunchProcesses, StartsAllAgainAfterAFailure) {
  ShellLaunch shell("echo start >>$DIR/$PLENUM_RANK; [ $(wc -l <$DIR/$PLENUM_RANK) -ge 3 ] || exit 75");
  shell.launch.num_restarts = 5;
  EXPECT_EQ(shell.run(), 0);
  for (const char* rank : {"0", "1", "2"}) EXPECT_EQ(shell.file(rank), "start\nstart\nstart\n");
  ASSERT_EQ(shell.lines.size(), 4U);
  EXPECT_EQ(shell.lines[1], "starting all 3 processes again (restart 1 of 5)");
  EXPECT_EQ(shell.lines[3], "starting all 3 processes again (restart 2 of 5)");
}

TEST(LaunchProcesses, StartsNothingAgainMoreOftenThanAsked) {
  ShellLaunch shell("echo start >>$DIR/$PLENUM_RANK; exit 75");
  shell.launch.num_restarts = 2;
  EXPECT_EQ(shell.run(), 75);
  EXPECT_EQ(shell.file("0"), "start\nstart\nstart\n");
}

TEST(LaunchProcesses, StartsNothingAgainAfterAUserErrorOrAStop) {
  for (const int code : {2, 85}) {
    ShellLaunch shell("echo start >>$DIR/$PLENUM_RANK; exit " + std::to_string(code));
    shell.launch.num_restarts = 2;
    EXPECT_EQ(shell.run(), code);
    EXPECT_EQ(shell.file("0"), "start\n");
  }
}

TEST(LaunchProcesses, LetsRanksThatStopTakeTheirTime) {
  ShellLaunch shell("[ $PLENUM_RANK = 1 ] || { sleep 1; echo whole >$DIR/$PLENUM_RANK; }; exit 85");
  shell.launch.grace = std::chrono::milliseconds(100);
  EXPECT_EQ(shell.run(), 85);
  EXPECT_EQ(shell.file("0"), "whole\n");
}

TEST(LaunchProcesses, RefusesAProgramThatIsNotThere) {
  ShellLaunch shell("");
  shell.launch.command = {"/no/such/program"};
  test::expect_user_error([&] { shell.run(); }, "cannot start /no/such/program: No such file or directory");
}

/// Waits until a file of the launch is there.
void wait_for_file(const ShellLaunch& shell, const std::string& name) {
  for (int i = 0; i < 6000 && shell.file(name).empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST(LaunchProcesses, PassesSignalsOnAndStartsNothingAgain) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
    ShellLaunch shell(
        "trap 'echo stopped >$DIR/stopped-$PLENUM_RANK; exit 1' TERM USR1 INT; echo start "
        ">>$DIR/$PLENUM_RANK; "
        "while :; do sleep 0.02; done");
    shell.launch.num_restarts = 3;
    const pid_t launcher = ::fork();
    if (launcher == 0) ::_exit(shell.run());
    for (const char* rank : {"0", "1", "2"}) wait_for_file(shell, rank);
    ::kill(launcher, signal);
    int status = 0;
    ::waitpid(launcher, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 1);
    for (const char* rank : {"0", "1", "2"}) {
      EXPECT_EQ(shell.file(std::string("stopped-") + rank), "stopped\n") << signal;
      EXPECT_EQ(shell.file(rank), "start\n");
    }
  }
}

TEST(LaunchProcesses, LeavesNoProcessBehindWhenTheLauncherIsKilled) {
  ShellLaunch shell("trap '' TERM; echo $$ >$DIR/$PLENUM_RANK; while :; do sleep 0.02; done");
  const pid_t launcher = ::fork();
  if (launcher == 0) ::_exit(shell.run());
  for (const char* rank : {"0", "1", "2"}) wait_for_file(shell, rank);
  ::kill(launcher, SIGKILL);
  ::waitpid(launcher, nullptr, 0);
  for (const char* rank : {"0", "1", "2"}) {
    const std::string stat = "/proc/" + std::to_string(std::stoi(shell.file(rank))) + "/stat";
    // Its new parent may take its time to wait for it: until then it is a zombie.
    const auto is_alive = [&] {
      std::string text;
      std::getline(std::ifstream(stat), text);
      return !text.empty() && text.find(") Z") == std::string::npos;
    };
    for (int i = 0; i < 6000 && is_alive(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(is_alive());
  }
}

}  // namespace
}  // namespace plenum::control
