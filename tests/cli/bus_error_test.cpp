#include "plenum/cli/bus_error.h"

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>

#include "plenum/io/file.h"

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

/// Reads what a file held when it was mapped, after it has become empty.
[[noreturn]] void read_cut_file(const std::string& path) {
  explain_bus_errors();
  const io::MappedFile file(path);
  std::filesystem::resize_file(path, 0);
  const volatile std::byte first = file.bytes().front();
  static_cast<void>(first);
  ::_exit(0);
}

TEST(BusErrorDeathTest, IsALineThatNamesTheFileThatWasCut) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("a file.bin", std::string(10'000, 'x'));
  EXPECT_EXIT(
      read_cut_file(path), testing::ExitedWithCode(2),
      "^plenum: error: .*/a file.bin became shorter while it was read, or its disk failed; restore it "
      "and start again\n$");
}

TEST(BusErrorDeathTest, OfOtherMemoryStaysOne) {
  const auto raise_bus_error = [] {
    explain_bus_errors();
    ::raise(SIGBUS);
    ::raise(SIGBUS);
  };
  EXPECT_EXIT(raise_bus_error(), testing::KilledBySignal(SIGBUS), "^$");
}

class CutDataset : public TrainingProgram {};

TEST_F(CutDataset, EndsTrainingInOneLine) {
  const pid_t child = start(train_arguments("run", 1'000'000) + " --quiet");
  ASSERT_TRUE(wait_for("run/metrics.jsonl", child)) << read("err");
  std::filesystem::resize_file(directory_ / "data/train.bin", 0);
  EXPECT_EQ(exit_code_of(child), 2);
  EXPECT_THAT(read("err"), testing::MatchesRegex("plenum: error: [^\n]*/data/train.bin became shorter while "
                                                 "it was read[^\n]*\n"));
}

}  // namespace
}  // namespace plenum::cli
