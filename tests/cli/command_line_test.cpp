#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plenum/cli/command.h"
#include "plenum/io/file.h"

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace plenum::cli {
namespace {

using test::ProgramResult;
using test::run_program;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CommandLine, ListsTheCommandsWhenNoneIsGiven) {
  const ProgramResult result = run_program("");
  EXPECT_EQ(result.exit_code, 0);
  for (const auto& command : all_commands()) EXPECT_THAT(result.output, HasSubstr(command->name()));
}

TEST(CommandLine, NamesTheNearestCommandAndOption) {
  const ProgramResult command = run_program("doctr");
  EXPECT_EQ(command.exit_code, 2);
  EXPECT_EQ(command.errors, "plenum: error: unknown command 'doctr'; did you mean 'doctor'?\n");
  const ProgramResult option = run_program("doctor --jsn");
  EXPECT_EQ(option.exit_code, 2);
  EXPECT_EQ(option.errors, "plenum: error: unknown option --jsn; did you mean '--json'?\n");
}

TEST(CommandLine, SaysTheNewNameOfAnOptionThatWasRenamed) {
  // What once chose the learning rate now chooses a pipeline, and says which there are.
  EXPECT_EQ(
      run_program("train --schedule wsd").errors,
      "plenum: error: --schedule must be one of auto, gpipe, 1f1b, interleaved, chimera, zb-h1: 'wsd'\n");
  const test::TemporaryDirectory directory;
  io::write_file((directory / "run.toml"), "[optimizer]\nschedule = \"wsd\"\n");
  EXPECT_THAT(run_program("train --config " + (directory / "run.toml")).errors,
              HasSubstr("run.toml:2: the key 'schedule' in section 'optimizer' is now called 'lr-schedule'"));
}

TEST(CommandLine, EveryCommandHasHelpAndPrintsAConfigurationItCanRead) {
  const test::TemporaryDirectory directory;
  for (const auto& command : all_commands()) {
    const ProgramResult help = run_program(command->name() + " --help");
    EXPECT_EQ(help.exit_code, 0) << command->name();
    EXPECT_THAT(help.output, HasSubstr("--config")) << command->name();
    EXPECT_EQ(help.output.find("{false}"), std::string::npos) << command->name();
    const ProgramResult config = run_program(command->name() + " --print-config");
    EXPECT_EQ(config.exit_code, 0) << command->name() << config.errors;
    io::write_file((directory / "run.toml"), config.output);
    const ProgramResult again =
        run_program(command->name() + " --print-config --config " + (directory / "run.toml"));
    EXPECT_EQ(again.exit_code, 0) << command->name() << again.errors;
    EXPECT_EQ(again.output, config.output) << command->name();
  }
}

TEST(CommandLine, FlagsWinOverTheFile) {
  const test::TemporaryDirectory directory;
  io::write_file((directory / "run.toml"), "[doctor]\njson = true\n");
  const std::string config = "doctor --print-config --config " + (directory / "run.toml");
  EXPECT_THAT(run_program(config).output, HasSubstr("json = true"));
  EXPECT_THAT(run_program(config + " --no-json").output, HasSubstr("json = false"));
}

TEST(CommandLine, SaysInPlainWordsWhatIsWrongWithAnOption) {
  EXPECT_EQ(run_program("pack --histogram").errors, "plenum: error: --histogram needs a value\n");
}

TEST(CommandLine, AnOptionThatIsGivenAgainOverridesWhatCameBefore) {
  const std::string train =
      run_program("train --seed 1 --run a --seed 2 --steps 9 --run b --print-config").output;
  EXPECT_THAT(train, ::testing::AllOf(HasSubstr("seed = 2\n"), HasSubstr("run = \"b\"\n")));
  EXPECT_THAT(run_program("doctor --json --no-json --print-config").output, HasSubstr("json = false"));
  EXPECT_THAT(run_program("doctor --no-json --json --print-config").output, HasSubstr("json = true"));
  // A word more than a command takes is still one too many.
  EXPECT_THAT(run_program("eval one two").errors, HasSubstr("unexpected argument 'two'"));
}

TEST(CommandLine, KeepsAllValuesOfAListThatIsGivenAgain) {
  const std::string config = run_program("prepare --inputs a --inputs b --print-config").output;
  EXPECT_THAT(config, ::testing::ContainsRegex("\"a\".*\"b\"")) << config;
}

TEST(CommandLine, SaysWhatFlagsOfOtherTrainersAreCalledHere) {
  const auto expect_hint = [](const std::string& arguments, const std::string& line) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.errors, StartsWith("plenum: error: " + line)) << arguments;
  };
  expect_hint("train --lr 1e-3", "unknown option --lr; use --learning-rate\n");
  expect_hint("train --batch-size 32", "unknown option --batch-size; use --global-batch: ");
  expect_hint("train --batch_size=32", "unknown option --batch_size; use --global-batch: ");
  expect_hint("train --epochs 3", "unknown option --epochs; use --steps 3ep\n");
  expect_hint("train --num_train_epochs 3", "unknown option --num_train_epochs; use --steps 3ep\n");
  expect_hint("train --output_dir x", "unknown option --output_dir; use --run\n");
  expect_hint("pack --lr 1", "unknown option --lr\n");
}

TEST(CommandLine, NamesTheCommandWhoseLettersWereSwapped) {
  EXPECT_EQ(run_program("trian").errors, "plenum: error: unknown command 'trian'; did you mean 'train'?\n");
}

TEST(CommandLine, HelpIsACommandToo) {
  EXPECT_EQ(run_program("help train").output, run_program("train --help").output);
  EXPECT_EQ(run_program("help").output, run_program("--help").output);
  EXPECT_EQ(run_program("help train").exit_code, 0);
  EXPECT_THAT(run_program("help trian").errors, HasSubstr("did you mean 'train'?"));
}

TEST(CommandLine, RefusesAFlagThatIsNeitherTrueNorFalse) {
  for (const char* arguments : {"doctor --json=maybe", "doctor --json=5", "doctor --no-json=maybe"}) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << result.errors;
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  }
  EXPECT_THAT(run_program("doctor --json=false").output, StartsWith("plenum "));
  EXPECT_THAT(run_program("doctor --json=true").output, StartsWith("{"));
}

TEST(CommandLine, OptionNamesAreUniqueWithinACommand) {
  for (const auto& command : all_commands()) {
    std::vector<std::string> names = {"config", "print-config", "help"};
    for (const base::OptionTable& table : command->tables()) {
      for (const base::Option& option : table.options()) {
        EXPECT_EQ(std::count(names.begin(), names.end(), option.name), 0)
            << command->name() << " --" << option.name;
        names.push_back(option.name);
        EXPECT_FALSE(option.help.empty()) << command->name() << " --" << option.name;
      }
    }
  }
}

TEST(Doctor, ReportsEveryPartInBothForms) {
  const nlohmann::json report = nlohmann::json::parse(run_program("doctor --json").output);
  const std::string text = run_program("doctor").output;
  for (const char* part : {"compiler", "CPU", "cores", "memory", "kernels", "MPI", "CUDA", "NCCL", "GPU"}) {
    const auto matches = [&](const nlohmann::json& entry) { return entry["name"] == part; };
    EXPECT_EQ(std::count_if(report["parts"].begin(), report["parts"].end(), matches), 1) << part;
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace plenum::cli
