// What Hugging Face transformers says of an exported model, where a Python that has it is at hand.

#include <gmock/gmock.h>

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

constexpr const char* kPython = "'" PLENUM_PYTHON "'";

TEST_F(TrainingProgram, ExportsWhatTransformersTakesAsItsOwn) {
  if (test::run_command(std::string(kPython) + " -c 'import torch, transformers'").exit_code != 0) {
    GTEST_SKIP() << kPython
                 << " has no torch and transformers: `tools/peers torch transformers` gets them, or "
                 << "configure with -DPLENUM_PYTHON=PROGRAM";
  }
  ASSERT_EQ(plenum("prepare in --output pairs --tokenizer data --objective mlm+nsp --max-length 32 --quiet")
                .exit_code,
            0);
  ASSERT_EQ(plenum(train_arguments("masked", 1) + " --quiet").exit_code, 0);
  ASSERT_EQ(plenum(train_arguments("paired", 1, 1, "pairs") + " --quiet").exit_code, 0);
  ASSERT_EQ(plenum("export masked --output BertForMaskedLM").exit_code, 0);
  ASSERT_EQ(plenum("export paired --output BertForPreTraining").exit_code, 0);
  const test::ProgramResult verified =
      test::run_command(std::string(kPython) + " '" PLENUM_SOURCE_DIR
                                               "/tools/verify_export.py' BertForMaskedLM BertForPreTraining",
                        directory_.path());
  EXPECT_EQ(verified.exit_code, 0) << verified.errors;
  const std::string good = ": loads without a warning, saves the same bytes\n";
  EXPECT_EQ(verified.output, "BertForMaskedLM" + good + "BertForPreTraining" + good);
}

}  // namespace
}  // namespace plenum::cli
