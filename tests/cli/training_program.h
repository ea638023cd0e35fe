#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace plenum::cli {

/// A small dataset in a directory of its own, in which the program trains.
class TrainingProgram : public testing::Test {
 protected:
  TrainingProgram() {
    std::string text;
    for (int document = 0; document < 60; ++document) {
      for (int sentence = 0; sentence <= document % 7; ++sentence) {
        text +=
            "The quick brown fox number " + std::to_string(document * sentence) + " jumps over the dog.\n";
      }
      text += "\n";
    }
    directory_.write("in/text.txt", text);
    const test::ProgramResult prepared =
        plenum("prepare in --output data --train-vocab 150 --max-length 32 --holdout 20% --quiet");
    EXPECT_EQ(prepared.exit_code, 0) << prepared.errors;
  }

  test::ProgramResult plenum(const std::string& arguments, std::string_view input = "") const {
    return test::run_program(arguments, directory_.path(), input);
  }

  /// In one line.
  void expect_error(const std::string& arguments, const std::string& part) const {
    const test::ProgramResult result = plenum(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.errors,
                testing::AllOf(testing::StartsWith("plenum: error: "), testing::HasSubstr(part)));
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  }

  static std::string train_arguments(const std::string& run, int steps, int threads = 1,
                                     const std::string& data = "data") {
    return "train --data " + data + " --run " + run +
           " --model bert-tiny --layers 2 --width 16 --heads 2 --max-positions 32 --global-batch 16 "
           "--learning-rate 1e-3 --seed 5 --device cpu --eval-every 6 --steps " +
           std::to_string(steps) + " --threads " + std::to_string(threads);
  }

  /// Becomes the program in the child of a fork, with `redirected` input and output; the shell does `before`
  /// first.
  [[noreturn]] void exec(const std::string& arguments, const std::string& redirected = "",
                         const std::string& before = "true") const {
    const std::string command = "cd '" + directory_.path() + "' && " + before + " && exec '" + PLENUM_BINARY +
                                "' " + arguments + " " + redirected;
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }

  /// Starts the program in the background, with its words in the files out and err, or all in a descriptor.
  pid_t start(const std::string& arguments, std::optional<int> words = std::nullopt,
              const std::string& before = "true") const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (words) {
      ::dup2(*words, STDOUT_FILENO);
      ::dup2(*words, STDERR_FILENO);
    }
    exec(arguments, words ? "</dev/null" : "</dev/null >out 2>err", before);
  }

  /// -1 if it was killed.
  static int exit_code_of(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  static bool has_ended(pid_t child) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
  }

  /// Until a file of the directory is there and longer than so many bytes: true; or until the process has
  /// ended without.
  bool wait_for(const std::string& name, pid_t child, std::uintmax_t more_than_bytes = 0) const {
    while (true) {
      const bool is_over = has_ended(child);  // first: what it wrote at its end is there then
      std::error_code error;
      if (std::filesystem::file_size(directory_ / name, error) > more_than_bytes && !error) return true;
      if (is_over) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  std::string read(const std::string& name) const {
    std::ifstream file(directory_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  test::TemporaryDirectory directory_;
};

}  // namespace plenum::cli
