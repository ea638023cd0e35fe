#pragma once

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/made_tasks.h"
#include "tests/support/random_bert.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace plenum::cli {

/// A small BERT in the directory `bert`, and files of made tasks beside it.
class FineTuningProgram : public testing::Test {
 protected:
  FineTuningProgram() {
    test::write_random_bert(
        directory_ / "bert", test::made_vocabulary(),
        {.width = 32, .num_layers = 2, .num_heads = 2, .mlp_width = 64, .max_positions = 64});
  }

  test::ProgramResult plenum(const std::string& arguments) const {
    return test::run_program(arguments, directory_.path());
  }

  /// Where the examples are that a task is evaluated on.
  static std::string dev_of(const test::MadeTask& task) { return "dev" + task.extension; }

  /// Writes the files of a task; returns the arguments that fine-tune for it.
  std::string finetune_arguments(const test::MadeTask& task, const std::string& run) const {
    directory_.write("train" + task.extension, made_examples(task, 1, 120));
    directory_.write(dev_of(task), made_examples(task, 2, 60));
    return fmt::format(
        "finetune --model bert --task {} --train train{} --dev {} --run {} --learning-rate 2e-3 --device cpu "
        "--threads 1 --max-length 40",
        describe::name_of(task.kind), task.extension, dev_of(task), run);
  }

  /// In one line.
  void expect_error(const std::string& arguments, const std::string& part) const {
    const test::ProgramResult result = plenum(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.errors,
                testing::AllOf(testing::StartsWith("plenum: error: "), testing::HasSubstr(part)));
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  }

  test::TemporaryDirectory directory_;
};

}  // namespace plenum::cli
