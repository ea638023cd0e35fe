#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace plenum::cli {
namespace {

using test::ProgramResult;
using testing::AllOf;
using testing::HasSubstr;

class PrepareCommandTest : public testing::Test {
 protected:
  PrepareCommandTest() {
    std::string text;
    for (int document = 0; document < 40; ++document) {
      for (int sentence = 0; sentence <= document % 7; ++sentence) {
        text +=
            "The quick brown fox number " + std::to_string(document * sentence) + " jumps over the dog.\n";
      }
      text += "\n";
    }
    directory_.write("in/text.txt", text);
  }
  ProgramResult plenum(const std::string& arguments) const {
    return test::run_program(arguments, directory_.path());
  }
  ProgramResult prepare(const std::string& arguments = "") const {
    return plenum("prepare in --output data --train-vocab 150 --max-length 64 " + arguments);
  }

  test::TemporaryDirectory directory_;
};

TEST_F(PrepareCommandTest, PreparesInspectsAndSaysWhatItDid) {
  const ProgramResult prepared = prepare();
  EXPECT_EQ(prepared.exit_code, 0) << prepared.output;
  EXPECT_THAT(prepared.output,
              AllOf(HasSubstr("prepared data"), HasSubstr("documents     40, separated by blank lines"),
                    HasSubstr("tokens on average, at most 64"),
                    HasSubstr("next: plenum train --data data --run DIR --model bert-mini")));
  const ProgramResult inspected = plenum("inspect data --verify --examples 1");
  EXPECT_EQ(inspected.exit_code, 0) << inspected.output;
  EXPECT_THAT(inspected.output,
              AllOf(HasSubstr("[CLS] the quick brown fox number"), HasSubstr("% of a run padded to 64"),
                    HasSubstr("verified: every file")));
  const ProgramResult again = prepare();
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.output, HasSubstr("already prepared"));
}

TEST_F(PrepareCommandTest, SaysWhatIsNotUtf8AndWhere) {
  directory_.write("in/latin.txt", "one\nh\xE9llo caf\xE9\n");
  const ProgramResult refused = prepare("--quiet");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("in/latin.txt:2: the input is not UTF-8"));
  const std::string counted = "2 bytes in 2 places, dropped; first at in/latin.txt:2\n";
  EXPECT_THAT(prepare("--invalid-utf8 replace").output, HasSubstr("not UTF-8     " + counted));
  EXPECT_THAT(plenum("inspect data").output, HasSubstr("not UTF-8: " + counted));
}

TEST_F(PrepareCommandTest, LabelsPairsAndSpeaksJson) {
  const ProgramResult prepared = prepare("--objective mlm+nsp --holdout 20% --json --quiet");
  ASSERT_EQ(prepared.exit_code, 0) << prepared.output;
  const nlohmann::json summary = nlohmann::json::parse(prepared.output);
  EXPECT_EQ(summary.at("objective"), "mlm+nsp");
  EXPECT_EQ(summary.at("counts").at("documents"), 40);
  EXPECT_GT(summary.at("holdout").at("documents"), 0);
  EXPECT_EQ(summary.at("histogram").size(), 65U);
  const nlohmann::json inspected = nlohmann::json::parse(plenum("inspect data --examples 5 --json").output);
  ASSERT_EQ(inspected.at("examples").size(), 5U);
  for (const auto& example : inspected.at("examples")) {
    EXPECT_THAT(example.at("label"), testing::AnyOf("is next", "random next"));
  }
  EXPECT_GT(inspected.at("padding").at("to_max_length"), 0.0);
}

TEST_F(PrepareCommandTest, WarnsOfWhatItSkipsAlsoWhenQuiet) {
  directory_.write("in/image.png", "x");
  const std::string warning = "warning: skipping 1 file of unknown format: in/image.png\n";
  EXPECT_THAT(prepare().errors, HasSubstr(warning));
  EXPECT_EQ(prepare("--overwrite --quiet").errors, warning);
}

TEST_F(PrepareCommandTest, TakesManyFilesForDocumentsAndSaysHowToChangeIt) {
  const auto write_manual = [&](int page) {
    std::string text;
    for (int i = 0; i < 20; ++i) text += "Paragraph " + std::to_string(page * i) + " of a page.\n\n";
    directory_.write("manual/" + std::to_string(page) + ".txt", text);
  };
  for (int page = 0; page < 10; ++page) write_manual(page);
  const std::string arguments = "prepare manual --output manual-data --train-vocab 60 --max-length 64 ";
  const ProgramResult chosen = plenum(arguments);
  EXPECT_THAT(chosen.errors, HasSubstr("documents: each .txt file is one, by the look of the text; "
                                       "--documents blank-line or line changes it\n"));
  EXPECT_THAT(chosen.output, AllOf(HasSubstr("documents     10, one per file"), HasSubstr("padding")));
  EXPECT_THAT(chosen.errors, testing::Not(HasSubstr("warning")));
  EXPECT_THAT(plenum("inspect manual-data --json").output, HasSubstr("\"documents\":\"file\""));

  const ProgramResult cut = plenum(arguments + "--overwrite --quiet --documents blank-line");
  EXPECT_THAT(cut.errors,
              HasSubstr("tokens on average, far below --max-length 64: blank lines end documents; "
                        "--documents file makes each file one\n"));
  EXPECT_THAT(cut.output, AllOf(HasSubstr("documents     200, separated by blank lines"),
                                testing::Not(HasSubstr("padding"))));
  EXPECT_THAT(plenum("inspect manual-data").errors, HasSubstr("--documents file makes each file one\n"));
}

TEST_F(PrepareCommandTest, ShowsContinuedTrainingAsTheNextStepWithTheTokenizerOfAModel) {
  prepare("--quiet");
  const std::string arguments = "prepare in --output again --tokenizer data --max-length 64 --quiet";
  EXPECT_THAT(plenum(arguments).output, HasSubstr("--run DIR --model bert-mini,"));
  directory_.write("model/config.json", "{}");
  for (const char* name : {"vocab.txt", "tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(directory_ / (std::string("data/") + name),
                               directory_ / (std::string("model/") + name));
  EXPECT_THAT(plenum("prepare in --output for-model --tokenizer model --max-length 64 --quiet").output,
              HasSubstr("next: plenum train --data for-model --run DIR --init model, plenum inspect"));
}

TEST_F(PrepareCommandTest, WarnsWhenNothingIsHeldOutAndOfUnknownTokens) {
  directory_.write("one.txt", "a b c d\n");
  directory_.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n");
  const ProgramResult result =
      plenum("prepare one.txt --output one --vocab vocab.txt --max-length 8 --holdout 1% --quiet");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.errors, AllOf(HasSubstr("warning: nothing is held out: --holdout sets whole documents"),
                                   HasSubstr("warning: 50.0 % of the tokens are unknown: the vocabulary does "
                                             "not fit the text; --train-vocab")));
}

TEST_F(PrepareCommandTest, ReportsWhatTheUserCanMendInOneLine) {
  const auto expect_error = [&](const std::string& arguments, const std::string& part) {
    const ProgramResult result = plenum(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.errors, AllOf(testing::StartsWith("plenum: error: "), HasSubstr(part)));
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  };
  expect_error("prepare in --train-vocab 150", "add --output DIR");
  expect_error("prepare in --output data", "exactly one of --vocab FILE");
  expect_error("prepare missing.txt --output data --train-vocab 150", "missing.txt: no such file");
  expect_error("prepare --output data --train-vocab 150", "no input is given");
  expect_error("prepare in --output data --vocab none.txt", "none.txt");
  expect_error("prepare in --output data --train-vocab 150 --holdout 120%", "holdout");
  expect_error("prepare in --output data --train-vocab 150 --max-length 4", "max-length must be at least 5");
  expect_error("prepare in --output data --train-vocb 150", "did you mean '--train-vocab'");
  expect_error("inspect in", "is no dataset");
  expect_error("inspect", "no dataset is given");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "data"));
}

}  // namespace
}  // namespace plenum::cli
