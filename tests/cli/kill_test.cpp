#include <csignal>
#include <map>
#include <random>

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

constexpr int kSteps = 120;
constexpr int kKills = 24;

class KillTest : public TrainingProgram {
 protected:
  std::map<std::string, std::string> final_checkpoint(const std::string& run) const {
    std::map<std::string, std::string> contents;
    for (const char* name : {"model.safetensors", "optimizer.safetensors", "config.json", "state.json"}) {
      contents[name] = read(run + "/checkpoints/step-00000" + std::to_string(kSteps) + "/" + name);
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

  static std::string arguments(const std::string& run) {
    return train_arguments(run, kSteps) + " --checkpoint-every 2 --quiet";
  }
};

TEST_F(KillTest, ARunKilledManyTimesEndsWithTheBytesOfOneThatWasNot) {
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(plenum(arguments("whole")).exit_code, 0);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;

  std::mt19937 random(1);
  int num_killed = 0;
  int num_while_writing = 0;
  int num_starts = 0;
  for (; num_killed < kKills && num_starts < 2 * kKills; ++num_starts) {
    const pid_t child = start(arguments("killed"));
    std::this_thread::sleep_for(whole * (static_cast<double>(random() % 100) / 2000));
    if (num_starts % 2 == 0) wait_for_writing(child);
    ::kill(child, SIGKILL);
    num_killed += exit_code_of(child) == -1 ? 1 : 0;
    num_while_writing += has_partial_checkpoint() ? 1 : 0;
  }
  EXPECT_GE(num_killed, 20) << "the run ended too early";
  EXPECT_GT(num_while_writing, 0) << "no kill came while a checkpoint was written";
  ASSERT_EQ(plenum(arguments("killed")).exit_code, 0);
  EXPECT_EQ(final_checkpoint("killed"), final_checkpoint("whole"));
  const std::string metrics = read("killed/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), kSteps);
}

}  // namespace
}  // namespace plenum::cli
