#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <sys/wait.h>

#include "tests/support/temporary_directory.h"

namespace plenum::test {

/// What a program printed and how it ended.
struct ProgramResult {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

/// Runs a command of the shell in `directory`, with `input` on standard input.
inline ProgramResult run_command(const std::string& command, const std::string& directory = ".",
                                 std::string_view input = "") {
  const TemporaryDirectory files;
  const auto read = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  };
  const std::string redirected = "cd '" + directory + "' && " + command + " <" + files.write("in", input) +
                                 " >" + files / "out" + " 2>" + files / "err";
  const int status = std::system(redirected.c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .output = read(files / "out"),
          .errors = read(files / "err")};
}

/// Runs build/plenum with shell-quoted `arguments`.
inline ProgramResult run_program(const std::string& arguments, const std::string& directory = ".",
                                 std::string_view input = "") {
  return run_command("'" PLENUM_BINARY "' " + arguments, directory, input);
}

}  // namespace plenum::test
