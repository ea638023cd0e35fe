#include <cstdint>
#include <regex>
#include <string>

#include <gmock/gmock.h>

#include "plenum/tensor/cuda_device.h"

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

/// The number of bytes that a text such as "84.2 MB" names.
double bytes_of(const std::string& number, const std::string& unit) {
  const double scale = unit == "kB" ? 1e3 : unit == "MB" ? 1e6 : 1e9;
  return std::stod(number) * scale;
}

struct Memory {
  double planned = 0;
  double peak = 0;
};

/// What the last words of training say of its memory.
Memory memory_of(const std::string& output) {
  std::smatch match;
  const std::regex memory("planned ([0-9.]+) ([kMG]B) \\(.*; the process's peak was ([0-9.]+) ([kMG]B)");
  if (!std::regex_search(output, match, memory)) {
    ADD_FAILURE() << output;
    return {};
  }
  return {.planned = bytes_of(match[1], match[2]), .peak = bytes_of(match[3], match[4])};
}

TEST_F(TrainingProgram, TakesWhatItPlannedHoweverManyRanksThereAre) {
  // The program and its libraries, which the plan leaves out. CUDA's take much more, as soon as they look for
  // a GPU.
  const double kProgram = tensor::cuda_obstacle() ? 20e6 : 400e6;
  constexpr double kMostUnused = 1.5;  // scratch is planned for the largest micro-batch and all threads
  for (const int ranks : {1, 64}) {
    const std::string run = "ranks" + std::to_string(ranks);
    std::string arguments = train_arguments(run, 3, ranks) + " --quiet --ranks " + std::to_string(ranks);
    arguments = std::regex_replace(arguments, std::regex("--width 16"), "--width 64");
    arguments = std::regex_replace(arguments, std::regex("--global-batch 16"), "--global-batch 128");
    const test::ProgramResult trained = plenum(arguments);
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    const Memory memory = memory_of(trained.output);
    EXPECT_LT(memory.peak, memory.planned + kProgram) << trained.output;
    EXPECT_LT(memory.planned, memory.peak * kMostUnused) << trained.output;
  }
}

}  // namespace
}  // namespace plenum::cli
