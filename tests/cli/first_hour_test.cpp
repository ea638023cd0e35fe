// A newcomer's first hour: from a folder of files to a model that transformers loads, by the commands of the
// README, each as it stands there but for the folder and for the length of training.

#include <filesystem>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/io/file.h"

#include "tests/support/code_lines.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace plenum::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExampleFolder = "/usr/share/doc/python3/html/_sources";

/// The arguments of the program in the README's blocks, in order, those behind "## Results" left out.
std::vector<std::string> readme_commands() {
  const std::string readme = io::read_file(PLENUM_SOURCE_DIR "/README.md");
  const std::string guide = readme.substr(0, readme.find("## Results"));
  std::vector<std::string> commands;
  for (const std::string& line : test::code_lines(guide.substr(guide.find("## Prepare")))) {
    constexpr std::string_view kProgram = "plenum ";
    if (line.starts_with(kProgram)) commands.push_back(line.substr(kProgram.size()));
  }
  return commands;
}

TEST(FirstHour, GoesFromAFolderToAModelByTheCommandsOfTheReadme) {
  const test::TemporaryDirectory directory;
  for (const auto& entry : fs::recursive_directory_iterator(PLENUM_SOURCE_DIR "/docs")) {
    if (entry.path().extension() != ".md") continue;
    directory.write("text/" + entry.path().stem().string() + ".txt", io::read_file(entry.path().string()));
  }
  std::vector<std::string> names;
  for (std::string command : readme_commands()) {
    names.push_back(command.substr(0, command.find(' ')));
    command = std::regex_replace(command, std::regex(kExampleFolder), "text");
    if (names.back() == "train") command += " --steps 3 --device cpu";
    const test::ProgramResult result = test::run_program(command, directory.path());
    EXPECT_EQ(result.exit_code, 0) << command << "\n" << result.errors;
  }
  EXPECT_THAT(names, testing::ElementsAre("prepare", "inspect", "train", "eval", "fill-mask", "export"));
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json", "vocab.txt"})
    EXPECT_TRUE(fs::exists(fs::path(directory / "my-bert") / name)) << name;
}

}  // namespace
}  // namespace plenum::cli
