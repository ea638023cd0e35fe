#include <csignal>
#include <map>
#include <random>

#include <fmt/format.h>

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

/// How a run goes that is killed again and again.
struct KilledRun {
  int steps = 0;
  int kills = 0;
  int ranks = 1;
  int threads = 1;  ///< of all ranks
  const char* more = "";
};

class KillTest : public TrainingProgram {
 protected:
  std::map<std::string, std::string> checkpoint(const std::string& run, int step) const {
    std::map<std::string, std::string> contents;
    for (const char* name : {"model.safetensors", "optimizer.safetensors", "config.json", "state.json"}) {
      contents[name] = read(fmt::format("{}/checkpoints/step-{:08}/{}", run, step, name));
      EXPECT_FALSE(contents[name].empty()) << name;
    }
    return contents;
  }

  bool has_partial_checkpoint() const {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ / "killed/checkpoints", error)) {
      if (entry.path().filename().string().find("partial") != std::string::npos) return true;
    }
    return false;
  }

  /// Until a checkpoint is being written, or the process has ended.
  void wait_for_writing(pid_t child) const {
    while (!has_partial_checkpoint() && !has_ended(child)) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  /// Kills a run at random moments, every other time while it writes a checkpoint, and lets it end.
  void expect_bytes_of_a_whole_run(const KilledRun& killed) {
    const auto arguments = [&](const std::string& run) {
      return train_arguments(run, killed.steps, killed.threads) +
             fmt::format(" --ranks {} --checkpoint-every 2 --quiet{}", killed.ranks, killed.more);
    };
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(plenum(arguments("whole")).exit_code, 0);
    const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;

    std::mt19937 random(1);
    int num_killed = 0;
    int num_while_writing = 0;
    for (int start = 0; num_killed < killed.kills && start < 2 * killed.kills; ++start) {
      const pid_t child = this->start(arguments("killed"));
      std::this_thread::sleep_for(whole * (static_cast<double>(random() % 100) / 2000));
      if (start % 2 == 0) wait_for_writing(child);
      ::kill(child, SIGKILL);
      num_killed += exit_code_of(child) == -1 ? 1 : 0;
      num_while_writing += has_partial_checkpoint() ? 1 : 0;
    }
    EXPECT_GE(num_killed, killed.kills * 5 / 6) << "the run ended too early";
    EXPECT_GT(num_while_writing, 0) << "no kill came while a checkpoint was written";
    ASSERT_EQ(plenum(arguments("killed")).exit_code, 0);
    EXPECT_EQ(checkpoint("killed", killed.steps), checkpoint("whole", killed.steps));
    const std::string metrics = read("killed/metrics.jsonl");
    EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), killed.steps);
  }
};

TEST_F(KillTest, ARunKilledManyTimesEndsWithTheBytesOfOneThatWasNot) {
  expect_bytes_of_a_whole_run({.steps = 120, .kills = 24});
}

TEST_F(KillTest, SoDoesOneOfTwoRanksWithTwoThreadsAndAShardEach) {
  expect_bytes_of_a_whole_run(
      {.steps = 60, .kills = 12, .ranks = 2, .threads = 4, .more = " --shard gradients"});
}

}  // namespace
}  // namespace plenum::cli
