#pragma once

#include <string>

namespace plenum::cli {

/// What a run of the program printed and how it ended.
struct ProgramResult {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

/// Runs build/plenum with shell-quoted `arguments`, `input` on standard input.
ProgramResult run_program(const std::string& arguments, const std::string& input = "");

}  // namespace plenum::cli
