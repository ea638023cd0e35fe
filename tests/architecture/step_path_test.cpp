#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/architecture/source_tree.h"

namespace plenum::architecture {
namespace {

/// A row of the table: a file, without its ending, and the call by which a step leaves it.
struct Hop {
  std::string file;
  std::string call;
};

/// The table "From command to kernel" of docs/design.md.
std::vector<Hop> path_of_a_step() {
  const std::string design = project_file("docs/design.md");
  const std::size_t begin = design.find("\n## From command to kernel\n");
  if (begin == std::string::npos) return {};
  const std::string section = design.substr(begin, design.find("\n## ", begin + 1) - begin);
  const std::regex row("\n\\| `([a-z0-9_/]+)` \\| (?:`([^`]+)`)?[^|\n]*\\|");
  std::vector<Hop> hops;
  for (std::sregex_iterator it(section.begin(), section.end(), row), end; it != end; ++it) {
    hops.push_back({.file = (*it)[1], .call = (*it)[2]});
  }
  return hops;
}

std::string header_of(const Hop& hop) {
  return project_file("plenum/" + hop.file + ".h");
}

/// "forward" of "program_.forward".
std::string function_of(const std::string& call) {
  return call.substr(call.find_last_of(".:>") + 1);
}

TEST(PathOfAStep, IsShortEnoughToSayAloud) {
  const std::vector<Hop> hops = path_of_a_step();
  ASSERT_FALSE(hops.empty()) << "docs/design.md has no table From command to kernel";
  EXPECT_EQ(hops.front().file, "cli/training_session");
  EXPECT_TRUE(hops.back().file.starts_with("kernels/cpu/"));
  EXPECT_LE(hops.size(), 10U) << "a file that only passes a step on belongs into its neighbour";
}

TEST(PathOfAStep, LeadsFromEachFileToTheNextInOneCall) {
  const std::vector<Hop> hops = path_of_a_step();
  for (std::size_t i = 0; i + 1 < hops.size(); ++i) {
    const auto& [file, call] = hops[i];
    const std::string source = project_file("plenum/" + file + ".cpp");
    EXPECT_NE(source.find(call), std::string::npos) << file << " does not call " << call;
    const std::regex declared("\\b" + function_of(call) + "\\(");
    EXPECT_TRUE(std::regex_search(header_of(hops[i + 1]), declared))
        << hops[i + 1].file << " has no " << function_of(call) << ", which " << file << " calls";
  }
}

}  // namespace
}  // namespace plenum::architecture
