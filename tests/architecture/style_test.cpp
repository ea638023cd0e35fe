#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "tests/architecture/function_bodies.h"
#include "tests/architecture/source_tree.h"

namespace plenum::architecture {
namespace {

constexpr std::size_t kMostLines = 600;
constexpr std::size_t kMostFunctionLines = 60;
/// Of a function that the GPU runs. What it keeps in registers cannot be handed to another function for the
/// asking: how code is cut decides there what the compiler keeps and in which order it loads.
constexpr std::size_t kMostDeviceFunctionLines = 90;

std::vector<SourceFile> all_sources() {
  std::vector<SourceFile> files;
  for (const char* folder : {"plenum", "tests", "bench"}) {
    for (SourceFile& file : source_files(folder)) files.push_back(std::move(file));
  }
  return files;
}

TEST(Style, FilesAreShort) {
  for (const SourceFile& file : all_sources()) EXPECT_LE(file.lines.size(), kMostLines) << file.path;
}

TEST(Style, FunctionsAreShort) {
  std::size_t num_functions = 0;
  for (const SourceFile& file : all_sources()) {
    for (const FunctionBody& body : function_bodies(file.lines)) {
      ++num_functions;
      EXPECT_LE(body.num_lines(), body.is_device_code ? kMostDeviceFunctionLines : kMostFunctionLines)
          << file.path << ":" << body.first_line << ": " << body.name;
    }
  }
  EXPECT_GT(num_functions, 5000U) << "the functions were not found at all";
}

TEST(Style, OnlyTheCommandLinePrintsOrEndsTheProcess) {
  const std::regex forbidden(
      "\\b(abort|_?exit|quick_exit|printf|fprintf|puts|perror)\\s*\\(|\\bstd::(cout|cerr|clog)\\b|\\bfmt::"
      "print\\b");
  for (const SourceFile& file : source_files("plenum")) {
    if (file.path.starts_with("plenum/cli/")) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(std::regex_search(code_of(file.lines[i]), forbidden))
          << file.path << ":" << i + 1 << ": " << file.lines[i];
    }
  }
}

TEST(Style, EnvironmentVariablesAreReadInOnePlace) {
  for (const SourceFile& file : source_files("plenum")) {
    if (file.path == "plenum/cli/environment.cpp") continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_EQ(code_of(file.lines[i]).find("getenv"), std::string::npos) << file.path << ":" << i + 1;
    }
  }
}

TEST(Style, NamesSayWhatThingsAre) {
  const std::regex vague("(^|[/_])(utils?|common|helpers?|misc|manager|impl)([_.]|$)", std::regex::icase);
  for (const SourceFile& file : all_sources()) {
    EXPECT_FALSE(std::regex_search(file.path, vague)) << file.path;
  }
}

TEST(Style, HeadersAreGuardedOnceAndMacrosAreRare) {
  const std::regex define("^\\s*#\\s*define\\b");
  for (const SourceFile& file : source_files("plenum")) {
    if (file.path.ends_with(".h")) {
      ASSERT_FALSE(file.lines.empty()) << file.path;
      EXPECT_EQ(file.lines.front(), "#pragma once") << file.path;
    }
    for (const std::string& line : file.lines)
      EXPECT_FALSE(std::regex_search(line, define)) << file.path << ": " << line;
  }
}

TEST(Style, NothingIsUnfinishedByItsOwnWord) {
  const std::regex mark(std::string("\\b(TO") + "DO|FIX" + "ME|XX" + "X|HA" + "CK)\\b");
  for (const SourceFile& file : all_sources()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(std::regex_search(file.lines[i], mark)) << file.path << ":" << i + 1;
    }
  }
}

TEST(CodeOf, DropsStringsAndComments) {
  EXPECT_EQ(code_of("f(\"exit(1)\"); // abort()"), "f(); ");
  EXPECT_EQ(code_of("f(\"a\\\"b\", g);"), "f(, g);");
}

}  // namespace
}  // namespace plenum::architecture
