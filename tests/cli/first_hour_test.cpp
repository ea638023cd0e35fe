// A newcomer's first hour: from a folder of files to a model that transformers loads, fine-tuned, by the
// commands of the README, each as it stands there but for the folder, what is held out of it, and the length
// of training.

#include <algorithm>
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

/// So many sentences about functions and classes, with a column that says which, or without.
std::string labelled_sentences(int count, bool with_labels) {
  std::string text = with_labels ? "label\tsentence\n" : "sentence\n";
  for (int i = 0; i < count; ++i) {
    const std::string subject = i % 2 == 0 ? "function" : "class";
    if (with_labels) text += subject + "\t";
    text += "this " + subject + " has number " + std::to_string(i) + "\n";
  }
  return text;
}

TEST(FirstHour, GoesFromAFolderToAModelByTheCommandsOfTheReadme) {
  const test::TemporaryDirectory directory;
  for (const auto& entry : fs::recursive_directory_iterator(PLENUM_SOURCE_DIR "/docs")) {
    if (entry.path().extension() != ".md") continue;
    directory.write("text/" + entry.path().stem().string() + ".txt", io::read_file(entry.path().string()));
  }
  directory.write("train.tsv", labelled_sentences(64, true));
  directory.write("dev.tsv", labelled_sentences(16, true));
  directory.write("new.tsv", labelled_sentences(5, false));
  std::vector<std::string> names;
  for (std::string command : readme_commands()) {
    names.push_back(command.substr(0, command.find(' ')));
    command = std::regex_replace(command, std::regex(kExampleFolder), "text");
    if (names.back() == "prepare") command += " --holdout 20%";  // of so few files
    if (names.back() == "train" || names.back() == "finetune") command += " --steps 3 --device cpu";
    const test::ProgramResult result = test::run_program(command, directory.path());
    EXPECT_EQ(result.exit_code, 0) << command << "\n" << result.errors;
  }
  EXPECT_THAT(names, testing::ElementsAre("prepare", "inspect", "train", "eval", "fill-mask", "export",
                                          "finetune", "predict"));
  for (const char* model : {"my-bert", "tuned/model"}) {
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.json", "vocab.txt"})
      EXPECT_TRUE(fs::exists(fs::path(directory / model) / name)) << model << ": " << name;
  }
  const std::string predictions = io::read_file(directory / "predictions.jsonl");
  EXPECT_EQ(std::ranges::count(predictions, '\n'), 5);
}

}  // namespace
}  // namespace plenum::cli
