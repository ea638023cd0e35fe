#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <sys/wait.h>

#include "tests/support/temporary_directory.h"

namespace plenum::test {

/// What a run of the program printed and how it ended.
struct ProgramResult {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

/// Runs build/plenum with shell-quoted `arguments` in `directory`, with `input` on standard input.
inline ProgramResult run_program(const std::string& arguments, const std::string& directory = ".",
                                 std::string_view input = "") {
  const TemporaryDirectory files;
  const auto read = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  };
  const std::string command = "cd '" + directory + "' && '" + PLENUM_BINARY + "' " + arguments + " <" +
                              files.write("in", input) + " >" + files / "out" + " 2>" + files / "err";
  const int status = std::system(command.c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .output = read(files / "out"),
          .errors = read(files / "err")};
}

}  // namespace plenum::test
