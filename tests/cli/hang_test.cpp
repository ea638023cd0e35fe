#include <csignal>

#include <sys/ptrace.h>

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

/// Stops one thread of a child, as if what it does never returned.
class StoppedThread {
 public:
  explicit StoppedThread(pid_t thread) : thread_(thread) {
    is_held_ = ::ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) == 0;
    if (is_held_) stop();
  }
  bool is_held() const { return is_held_; }

  /// Lets it go on for a moment: it may hold a lock that those who watch need.
  void move() {
    ::ptrace(PTRACE_CONT, thread_, nullptr, nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    stop();
  }
  /// Whether its process has ended; only when this was asked can its parent wait for that.
  bool has_ended() {
    look(WNOHANG);
    return has_ended_;
  }

 private:
  void stop() {
    ::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr);
    look(0);
  }
  void look(int options) {
    int status = 0;
    if (has_ended_ || ::waitpid(thread_, &status, __WALL | options) != thread_) return;
    has_ended_ = !WIFSTOPPED(status);
  }

  pid_t thread_;
  bool is_held_ = false;
  bool has_ended_ = false;
};

class HangTest : public TrainingProgram {
 protected:
  /// The thread of a process that has a name; 0 if there is none.
  static pid_t thread_named(pid_t process, const std::string& name) {
    const std::string tasks = "/proc/" + std::to_string(process) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      std::string found;
      std::getline(std::ifstream(task.path() / "comm"), found);
      if (found == name) return static_cast<pid_t>(std::stol(task.path().filename().string()));
    }
    return 0;
  }

  /// What a run says whose rank 1 computes no more from some step on, and how it ends; -1 where no thread can
  /// be stopped.
  int train_with_a_stopped_thread(const std::string& more) {
    // Large enough that a thread is seldom stopped where it holds a lock.
    const pid_t child = start(
        "train --data data --run run --model bert-tiny --global-batch 64 --steps 1000000 --threads 2 --ranks "
        "2 "
        "--hang-limit 1s" +
        more);
    EXPECT_TRUE(wait_for("run/metrics.jsonl", child, 500));
    const pid_t thread = thread_named(child, "rank1 compute");
    EXPECT_NE(thread, 0);
    StoppedThread compute(thread);
    if (!compute.is_held()) {
      ::kill(child, SIGKILL);
      exit_code_of(child);
      return -1;
    }
    constexpr std::chrono::seconds kPatience{10};
    auto stopped = std::chrono::steady_clock::now();
    while (!compute.has_ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (std::chrono::steady_clock::now() - stopped < kPatience) continue;
      compute.move();
      stopped = std::chrono::steady_clock::now();
    }
    return exit_code_of(child);
  }

  void expect_told(const std::string& more) {
    const int exit_code = train_with_a_stopped_thread(more);
    if (exit_code == -1) GTEST_SKIP() << "no thread of a child can be stopped here";
    EXPECT_EQ(exit_code, 75) << read("err");
    EXPECT_THAT(
        read("err"),
        AllOf(ContainsRegex("plenum: error: rank [01], [a-z]+, step [0-9]+, .* 1000 ms"),
              HasSubstr("rank 1, compute, step "),
              ContainsRegex("give the command again to go on from step [0-9]+; the last checkpoint: ")));
  }
};

TEST_F(HangTest, ARunSaysWhereItHangsAndEnds) {
  expect_told("");
}

TEST_F(HangTest, AQuietRunDoesSoToo) {
  expect_told(" --quiet");
}

TEST_F(HangTest, ALimitThatIsNoTimeIsRefused) {
  expect_error("train --data data --run x --model bert-tiny --hang-limit 3", "hang-limit");
}

}  // namespace
}  // namespace plenum::cli
