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
  EXPECT_THAT(
      prepared.output,
      AllOf(HasSubstr("prepared data"), HasSubstr("documents     40"), HasSubstr("of up to 64 tokens"),
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

TEST_F(PrepareCommandTest, NotesWhatItSkipsOnlyWhenNotQuiet) {
  directory_.write("in/image.png", "x");
  EXPECT_THAT(prepare().errors, HasSubstr("skipping 1 file of unknown format, such as in/image.png"));
  EXPECT_THAT(prepare("--overwrite --quiet").errors, testing::Not(HasSubstr("skipping")));
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
