#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plenum/io/file.h"

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kPythonOfVectors = "'" PLENUM_PYTHON "'";

class EmbedCommandTest : public TrainingProgram {
 protected:
  EmbedCommandTest() {
    EXPECT_EQ(plenum(train_arguments("run", 1) + " --quiet").exit_code, 0);
    directory_.write("texts.txt", "The quick brown fox\n\njumps over the dog number 12 and the dog\n");
  }
};

TEST_F(EmbedCommandTest, WritesAFileAndSaysWhatIsInIt) {
  const test::ProgramResult result =
      plenum("embed --model run --input texts.txt --output v.npy --max-length 8 --device cpu --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const nlohmann::json report = nlohmann::json::parse(result.output);
  EXPECT_EQ(report["texts"], 3);
  EXPECT_EQ(report["width"], 16);
  EXPECT_EQ(report["empty"], 1);
  EXPECT_EQ(report["pooling"], "mean");
  EXPECT_GT(report["truncated"], 0);
  EXPECT_THAT(result.errors, HasSubstr("truncated to 8 tokens"));
  EXPECT_THAT(result.errors, HasSubstr("empty texts, with vectors of [CLS] and [SEP] alone: 1\n"));
  EXPECT_EQ(io::read_file(directory_ / "v.npy").size(), 128 + 3 * 16 * sizeof(float));
}

TEST_F(EmbedCommandTest, RefusesOrReplacesWhatIsNotUtf8AsItAdvises) {
  directory_.write("latin.txt", "ein Tag\nein sch\xf6ner Tag\n");
  const std::string arguments = "embed --model run --input latin.txt --output v.npy --device cpu --json";
  expect_error(arguments, "latin.txt:2: the input is not UTF-8");
  const test::ProgramResult result = plenum(arguments + " --invalid-utf8 replace");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(nlohmann::json::parse(result.output)["replaced"], 1);
  EXPECT_THAT(result.errors, HasSubstr("not UTF-8, read as U+FFFD: 1"));
}

TEST_F(EmbedCommandTest, SaysWhatIsMissing) {
  expect_error("embed --input texts.txt --output v.npy", "no model is given");
  expect_error("embed --model run --output v.npy", "no texts are given");
  expect_error("embed --model run --input texts.txt", "no place for the vectors is given");
  expect_error("embed --model run --input texts.txt --output v.npy --pooling max", "pooling");
}

TEST_F(EmbedCommandTest, GivesTheVectorsOfSentenceTransformers) {
  if (test::run_command(std::string(kPythonOfVectors) + " -c 'import torch, sentence_transformers'")
          .exit_code != 0) {
    GTEST_SKIP()
        << kPythonOfVectors
        << " has no sentence-transformers: `tools/peers torch transformers sentence_transformers` gets "
        << "it, or configure with -DPLENUM_PYTHON=PROGRAM";
  }
  ASSERT_EQ(plenum("export run --output exported").exit_code, 0);
  const test::ProgramResult verified = test::run_command(
      std::string(kPythonOfVectors) + " '" PLENUM_SOURCE_DIR "/tools/verify_vectors.py' '" PLENUM_BINARY
                                      "' exported texts.txt",
      directory_.path());
  EXPECT_EQ(verified.exit_code, 0) << verified.errors << verified.output;
}

}  // namespace
}  // namespace plenum::cli
