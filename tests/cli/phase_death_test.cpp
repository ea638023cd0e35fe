#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cli/processes_program.h"

namespace plenum::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// One process is killed in a phase of a step (tests/cli/dying).
struct PhaseDeath {
  std::string phase;
  int rank = 1;
  int count = 1;  ///< how often it begins the phase until it dies
  std::string more = "";
};

class PhaseDeathTest : public ProcessesProgram {
 protected:
  static constexpr std::size_t kCount = 2;

  static std::string arguments(const std::string& run, std::uint64_t steps, const PhaseDeath& death) {
    // A constant rate, so that it does not matter for how many steps a run was begun.
    return fmt::format(
        "--data data --run {} --model bert-tiny --layers 2 --width 16 --heads 2 --max-positions 32 "
        "--global-batch 16 --learning-rate 1e-3 --lr-schedule constant --warmup 0 --seed 5 --device cpu "
        "--bucket-bytes 1 --threads 2 --checkpoint-every 3 --eval-every {} --steps {}{}",
        run, death.phase == "evaluation" ? 2 : 1'000'000, steps, death.more);
  }

  /// The step of the newest checkpoint; 0 where there is none.
  std::uint64_t newest_step(const std::string& run) const {
    std::uint64_t newest = 0;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(directory_ / (run + "/checkpoints"), ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("step-") && name.find('.') == std::string::npos)
        newest = std::max<std::uint64_t>(newest, std::stoull(name.substr(5)));
    }
    return newest;
  }

  /// The other process names the one that died and what it did, and the run resumes and ends with the bytes
  /// of one that was left in peace.
  void expect_survived(const PhaseDeath& death) const {
    SCOPED_TRACE(fmt::format("{} of rank {}, {}{}", death.phase, death.rank, death.count, death.more));
    std::filesystem::remove_all(directory_ / "run");
    std::filesystem::remove_all(directory_ / "peace");
    const test::ProgramResult killed =
        test::run_command(mpirun(kCount,
                                 fmt::format("{} {} {} ", death.phase, death.rank, death.count) +
                                     arguments("run", 1'000'000, death),
                                 PLENUM_DYING_TRAIN),
                          directory_.path());
    EXPECT_NE(killed.exit_code, 0);
    EXPECT_THAT(killed.errors,
                AllOf(HasSubstr(fmt::format("rank {}: rank {} on ", 1 - death.rank, death.rank)),
                      HasSubstr("the process ended or was killed"), HasSubstr("its last action: ")));
    const std::uint64_t steps = newest_step("run") + 4;
    const test::ProgramResult resumed = train(kCount, "train " + arguments("run", steps, death));
    ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
    const test::ProgramResult peace =
        plenum("train " + arguments("peace", steps, death) + " --quiet --ranks " + std::to_string(kCount));
    ASSERT_EQ(peace.exit_code, 0) << peace.errors;
    expect_same_checkpoints("run", "peace", fmt::format("{:08}", steps));
  }
};

TEST_F(PhaseDeathTest, IsNamedAndTheRunGoesOnToTheBytesOfAnUndisturbedOne) {
  expect_survived({.phase = "gather", .more = " --shard gradients"});
  // Each has written its part, and the one dies before it says so.
  expect_survived({.phase = "checkpoint", .count = 3, .more = " --shard optimizer"});
}

TEST_F(PhaseDeathTest, OfAStageIsNamedAndThePipelineGoesOn) {
  expect_survived({.phase = "send", .count = 5, .more = " --pp 2 --schedule 1f1b"});
}

/// For tools/soak.
TEST_F(PhaseDeathTest, DISABLED_SoakIsNamedInEveryPhaseAndTheRunGoesOn) {
  for (const std::string more : {"", " --shard optimizer", " --shard gradients", " --shard parameters",
                                 " --pp 2 --schedule 1f1b", " --pp 2 --schedule chimera"}) {
    const bool is_pipeline = more.find("--pp") != std::string::npos;
    for (const int rank : {0, 1}) {
      for (const char* phase :
           {"forward", "backward", "send", "reduce", "agree", "update", "gather", "evaluation"}) {
        const bool is_gathered = more.find("--shard") != std::string::npos;
        if (std::string_view(phase) == "gather" && !is_gathered) continue;  // nothing is gathered in steps
        if (std::string_view(phase) == "send" && !is_pipeline) continue;
        expect_survived({.phase = phase, .rank = rank, .count = 2, .more = more});
      }
      for (int count = 1; count <= 5; ++count)
        expect_survived({.phase = "checkpoint", .rank = rank, .count = count, .more = more});
    }
  }
}

}  // namespace
}  // namespace plenum::cli
