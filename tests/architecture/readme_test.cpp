#include <cstdio>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/architecture/source_tree.h"
#include "tests/support/code_lines.h"

namespace plenum::architecture {
namespace {

// The documents whose commands, links and tree must be true.
const std::vector<std::string> kDocuments = {"README.md",
                                             "CONTRIBUTING.md",
                                             "bench/reproduce/README.md",
                                             "bench/results/epyc-2-202611.md",
                                             "bench/results/h200-202611.md",
                                             "bench/results/h200-agreement-202611.md",
                                             "bench/results/published-202611.md",
                                             "bench/results/study-epyc-2-202611.md",
                                             "bench/results/xeon-16-202611.md",
                                             "bench/results/xeon-2-202611.md",
                                             "docs/decisions/README.md",
                                             "docs/decisions/attention.md",
                                             "docs/decisions/control.md",
                                             "docs/decisions/communication.md",
                                             "docs/decisions/cuda-gemm.md",
                                             "docs/decisions/cuda.md",
                                             "docs/decisions/engine.md",
                                             "docs/decisions/kfac.md",
                                             "docs/decisions/matrix-updates.md",
                                             "docs/decisions/pipelines.md",
                                             "docs/decisions/planner.md",
                                             "docs/decisions/sharding.md",
                                             "docs/decisions/tasks.md",
                                             "docs/design.md",
                                             "docs/fine-tuning.md",
                                             "docs/formats.md",
                                             "docs/getting-started.md",
                                             "docs/ops.md",
                                             "docs/pictures.md",
                                             "docs/planning.md",
                                             "docs/preparing-text.md",
                                             "docs/report.md",
                                             "docs/schedules.md",
                                             "docs/sentence-vectors.md",
                                             "docs/several-processes.md",
                                             "docs/training.md"};

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  ::pclose(pipe);
  return text;
}

std::set<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
    found.insert((*it)[1]);
  return found;
}

std::set<std::string> commands_of_program() {
  const std::string help = output_of(std::string(PLENUM_BINARY) + " --help");
  return matches(help.substr(help.find("Subcommands:")), std::regex("\\n  ([a-z-]+) "));
}

TEST(Documents, CommandsAndTheirFlagsExist) {
  const std::set<std::string> known = commands_of_program();
  ASSERT_FALSE(known.empty());
  const std::regex command("(?:^|\\s)(?:build/)?plenum ([a-z][a-z-]*)");
  int checked = 0;
  for (const std::string& document : kDocuments) {
    for (const std::string& line : test::code_lines(project_file(document))) {
      std::smatch match;
      if (!std::regex_search(line, match, command)) continue;
      const std::string name = match[1];
      ASSERT_TRUE(known.contains(name)) << document << ": " << line;
      const std::string help = output_of(std::string(PLENUM_BINARY) + " " + name + " --help");
      for (const std::string& flag :
           matches(line.substr(0, line.find('#')), std::regex("\\s(--[a-z][a-z-]*)"))) {
        EXPECT_TRUE(std::regex_search(help, std::regex("--(\\[no-\\])?" + flag.substr(2) + "[^a-z-]")))
            << document << ": " << flag << " in: " << line;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 0);
}

TEST(Documents, ReadmeListsEveryCommand) {
  const std::string readme = project_file("README.md");
  for (const std::string& name : commands_of_program()) {
    EXPECT_NE(readme.find("plenum " + name), std::string::npos) << name;
  }
}

TEST(Documents, MakeTargetsExist) {
  const std::string makefile = project_file("Makefile");
  const std::set<std::string> targets = matches(makefile, std::regex("(?:^|\\n)([a-z]+):"));
  for (const std::string& document : kDocuments) {
    for (const std::string& target : matches(project_file(document), std::regex("`make ([a-z]+)"))) {
      EXPECT_TRUE(targets.contains(target)) << document << ": make " << target;
    }
  }
}

TEST(Documents, LinksLeadSomewhere) {
  namespace fs = std::filesystem;
  for (const std::string& document : kDocuments) {
    const fs::path folder = (fs::path(PLENUM_SOURCE_DIR) / document).parent_path();
    for (const std::string& link : matches(project_file(document), std::regex("\\]\\(([^)#]+)[^)]*\\)"))) {
      if (link.starts_with("http")) continue;
      EXPECT_TRUE(fs::exists(folder / link)) << document << " links to " << link;
    }
  }
}

TEST(Documents, DesignNamesEveryFolder) {
  const std::string design = project_file("docs/design.md");
  for (const auto& entry : std::filesystem::directory_iterator(std::string(PLENUM_SOURCE_DIR) + "/plenum")) {
    if (!entry.is_directory()) continue;
    const std::string folder = "`" + entry.path().filename().string() + "`";
    EXPECT_NE(design.find(folder), std::string::npos) << folder;
  }
}

}  // namespace
}  // namespace plenum::architecture
