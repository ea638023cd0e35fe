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
  for (const char* const given : {"train --schedule wsd", "train --schedule=wsd"}) {
    const ProgramResult result = run_program(given);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.errors, "plenum: error: --schedule is now called --lr-schedule\n");
  }
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
  EXPECT_EQ(run_program("pack --histogram a --histogram b").errors,
            "plenum: error: --histogram is given more than once\n");
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
