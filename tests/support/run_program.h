#pragma once

#include <array>
#include <cstdio>
#include <string>

#include <sys/wait.h>

namespace plenum::test {

struct ProgramResult {
  int exit_code = -1;
  std::string output;  ///< standard output and standard error
};

/// Runs a shell command and waits for it.
inline ProgramResult run_program(const std::string& command) {
  ProgramResult result;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> chunk{};
  while (const std::size_t count = std::fread(chunk.data(), 1, chunk.size(), pipe)) {
    result.output.append(chunk.data(), count);
  }
  const int status = ::pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace plenum::test
