#include <csignal>
#include <filesystem>
#include <regex>

#include <sys/ptrace.h>

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

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
  /// Once it has ended. That of a process's first thread is the process's, which is then waited for.
  int exit_code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }

 private:
  void stop() {
    ::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr);
    look(0);
  }
  void look(int options) {
    if (has_ended_ || ::waitpid(thread_, &status_, __WALL | options) != thread_) return;
    has_ended_ = !WIFSTOPPED(status_);
  }

  pid_t thread_;
  int status_ = 0;
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

  /// How a run ends of which a thread gets no further, once the run has begun; -1 where no thread can be
  /// stopped. Where it is stopped outside of what is meant, it is let go on a bit, again and again.
  int train_with_a_stopped_thread(const std::string& name, const std::string& more) {
    const pid_t child = start(
        "train --data data --run run --model bert-tiny --device cpu --steps 1000000 --hang-limit 1s" + more);
    EXPECT_TRUE(wait_for("run/metrics.jsonl", child, 500)) << read("err");
    const pid_t thread = thread_named(child, name);
    EXPECT_NE(thread, 0);
    StoppedThread stopped(thread);
    if (!stopped.is_held()) {
      ::kill(child, SIGKILL);
      exit_code_of(child);
      return -1;
    }
    constexpr std::chrono::seconds kPatience{5};
    auto since = std::chrono::steady_clock::now();
    while (!stopped.has_ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (std::chrono::steady_clock::now() - since < kPatience) continue;
      stopped.move();
      since = std::chrono::steady_clock::now();
    }
    return thread == child ? stopped.exit_code() : exit_code_of(child);
  }

  /// With a hang in a thread of that name the run ends, and says so in these words.
  void expect_told(const std::string& thread, const std::string& more, const std::string& regex) {
    // A thread may be stopped between what is meant, where it seldom is: then it is tried again.
    constexpr int kMostTries = 8;
    const std::string told = "plenum: error: " + regex + ".* 1000 ms";
    for (int i = 0; i == 0 || (i < kMostTries && !std::regex_search(read("err"), std::regex(told))); ++i) {
      std::filesystem::remove_all(directory_ / "run");
      const int exit_code = train_with_a_stopped_thread(thread, more);
      if (exit_code == -1) GTEST_SKIP() << "no thread of a child can be stopped here";
      EXPECT_EQ(exit_code, 75) << read("err");
      EXPECT_THAT(read("err"),
                  ContainsRegex("give the command again to resume from step [0-9]+; the last checkpoint: "));
    }
    EXPECT_THAT(read("err"), ContainsRegex(told));
  }

  void expect_step_told(const std::string& more) {
    // Large enough that a thread is seldom stopped where it holds a lock.
    expect_told("rank1 compute", " --global-batch 64 --threads 2 --ranks 2" + more,
                "rank [01], [a-z]+, step [0-9]+, ");
    if (IsSkipped()) return;
    EXPECT_THAT(read("err"), HasSubstr("rank 1, compute, step "));
  }
};

TEST_F(HangTest, ARunSaysWhereItHangsAndEnds) {
  expect_step_told("");
}

TEST_F(HangTest, AQuietRunDoesSoToo) {
  expect_step_told(" --quiet");
}

TEST_F(HangTest, ARunThatWaitsForItsDataSaysSo) {
  expect_told("prefetch", " --global-batch 16 --threads 1",
              "step [0-9]+ hangs: it waits for its data, which has not come for");
}

// The program's first thread, which bears its name, does what follows by itself, here most of the time.
TEST_F(HangTest, ARunThatHangsInAnEvaluationSaysSo) {
  expect_told("plenum", " --global-batch 1 --threads 1 --eval-every 1 --eval-sequences 0",
              "the evaluation after step [0-9]+ hangs: no micro-batch has been done for");
}

TEST_F(HangTest, ARunThatHangsInWritingACheckpointSaysSo) {
  expect_told("plenum", " --global-batch 1 --threads 1 --eval-every 0 --checkpoint-every 1",
              "writing the checkpoint of step [0-9]+ hangs: nothing has been written for");
}

TEST_F(HangTest, ALimitThatIsNoTimeIsRefused) {
  expect_error("train --data data --run x --model bert-tiny --hang-limit 3", "hang-limit");
}

}  // namespace
}  // namespace plenum::cli
