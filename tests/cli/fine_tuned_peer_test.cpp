// What Hugging Face transformers says of fine-tuned models, where a Python that has it is at hand.

#include "tests/cli/fine_tuning_program.h"

namespace plenum::cli {
namespace {

constexpr const char* kTransformersPython = "'" PLENUM_PYTHON "'";

class FineTunedForTransformers : public FineTuningProgram,
                                 public testing::WithParamInterface<test::MadeTask> {};

INSTANTIATE_TEST_SUITE_P(Tasks, FineTunedForTransformers, testing::ValuesIn(test::made_tasks()),
                         [](const testing::TestParamInfo<test::MadeTask>& info) {
                           std::string name(describe::name_of(info.param.kind));
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(FineTunedForTransformers, PredictsTheSame) {
  if (test::run_command(std::string(kTransformersPython) + " -c 'import torch, transformers'").exit_code !=
      0) {
    GTEST_SKIP() << kTransformersPython
                 << " has no torch and transformers: `tools/peers torch transformers` gets them, or "
                 << "configure with -DPLENUM_PYTHON=PROGRAM";
  }
  test::MadeTask task = GetParam();
  task.extension = ".jsonl";
  const test::ProgramResult trained = plenum(finetune_arguments(task, "run") + " --quiet");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const auto verify = [this](const std::string& tool, const std::string& arguments) {
    return test::run_command(
        fmt::format("{} '{}/tools/{}' {}", kTransformersPython, PLENUM_SOURCE_DIR, tool, arguments),
        directory_.path());
  };
  const test::ProgramResult loaded = verify("verify_export.py", "run/model");
  EXPECT_EQ(loaded.exit_code, 0) << loaded.output << loaded.errors;
  const test::ProgramResult same =
      verify("verify_predictions.py", "run/model " + dev_of(task) + " run/dev-predictions.jsonl");
  EXPECT_EQ(same.exit_code, 0) << same.output << same.errors;
  EXPECT_THAT(same.output, testing::HasSubstr("predicts the same: "));
}

}  // namespace
}  // namespace plenum::cli
