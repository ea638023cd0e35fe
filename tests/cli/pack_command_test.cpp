#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "plenum/io/file.h"
#include "plenum/packing/packers.h"

#include "tests/support/compress.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace plenum::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Runs the program as a user does, in a directory of its own that is gone after the test.
class PackCommandTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_ / name; }

  void write(const std::string& name, const std::string& text) const { directory_.write(name, text); }

  test::ProgramResult pack(const std::string& arguments) const {
    return test::run_program("pack " + arguments, directory_.path());
  }

  /// Expects one line on standard error that says `reason`, exit code 2, and no plan.
  void expect_refusal(const std::string& arguments, const std::string& reason) const {
    const test::ProgramResult outcome = pack(arguments + " --output plan.json");
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.output, "") << arguments;
    EXPECT_THAT(outcome.errors, HasSubstr(reason)) << arguments;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
    EXPECT_FALSE(std::filesystem::exists(path("plan.json"))) << arguments;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      EXPECT_EQ(entry.path().string().find(".partial"), std::string::npos) << arguments;
    }
  }

  void expect_bad_histogram(const std::string& text, const std::string& reason) const {
    write("bad.txt", text);
    expect_refusal("--histogram bad.txt", reason);
  }

  test::TemporaryDirectory directory_;
};

std::string golden(const std::string& name) {
  return std::string(PLENUM_SOURCE_DIR) + "/tests/golden/" + name + "_histogram.txt";
}

TEST_F(PackCommandTest, PrintsStableJsonKeys) {
  const test::ProgramResult outcome = pack("--json --algorithm lpfhp --histogram " + golden("squad_1_1_384"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const auto result = nlohmann::ordered_json::parse(outcome.output);
  std::vector<std::string> keys;
  for (const auto& [key, value] : result.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"algorithm", "sequences", "tokens", "capacity", "depth", "packs",
                                            "efficiency", "lower_bound", "gap_packs", "seconds"}));
  EXPECT_EQ(result["algorithm"], "lpfhp");
  EXPECT_EQ(result["sequences"], 88641);
  EXPECT_EQ(result["tokens"], 15249479);
  EXPECT_EQ(result["capacity"], 384);
  EXPECT_EQ(result["depth"], 384);
  EXPECT_EQ(result["packs"], 40631);
  EXPECT_NEAR(result["efficiency"].get<double>(), 0.97739, 1e-5);
  EXPECT_EQ(result["gap_packs"].get<int>(), 40631 - result["lower_bound"].get<int>());
}

TEST_F(PackCommandTest, TakesOptimalUnlessAskedOtherwise) {
  write("h.txt", "0\n0\n4\n0\n0\n0\n4\n");
  const test::ProgramResult outcome = pack("--json --histogram h.txt --max-length 10");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const auto result = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(result["algorithm"], "optimal");
  EXPECT_EQ(result["packs"], 4);
  EXPECT_EQ(result["gap_packs"], 0);
}

TEST_F(PackCommandTest, ProvesNoLessForOtherAlgorithmsThanForOptimal) {
  write("h.txt", "0\n3\n0\n9\n0\n2\n8\n");
  const auto bound = [&](const std::string& arguments) {
    return nlohmann::json::parse(
               pack("--json --max-length 11 --histogram h.txt " + arguments).output)["lower_bound"]
        .get<int>();
  };
  EXPECT_EQ(bound("--algorithm spfhp"), bound("--algorithm optimal"));
  EXPECT_LE(bound("--algorithm spfhp --bound quick"), bound("--algorithm spfhp"));
}

TEST_F(PackCommandTest, GivesNnlshpItsDeepestPacksUnlessAskedOtherwise) {
  write("h.txt", "0\n3\n0\n9\n0\n2\n8\n");
  const test::ProgramResult outcome = pack("--json --algorithm nnlshp --max-length 11 --histogram h.txt");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(nlohmann::json::parse(outcome.output)["depth"], 3);
  expect_refusal("--histogram h.txt --algorithm nnlshp --depth 4", "nnlshp cannot pack this");
}

TEST_F(PackCommandTest, RunsAllPackersSideBySide) {
  write("h.txt", "5\n4\n3\n2\n1\n");
  const test::ProgramResult outcome = pack("--algorithm all --json --max-length 8 --histogram h.txt");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const nlohmann::json results = nlohmann::json::parse(outcome.output);
  ASSERT_EQ(results.size(), packing::all_packers().size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const packing::Packer& packer = packing::all_packers()[i];
    EXPECT_EQ(results[i]["algorithm"], std::string(packer.name));
    EXPECT_EQ(results[i]["depth"], packer.greatest_depth > 0 ? packer.greatest_depth : 8);
    EXPECT_GE(results[i]["gap_packs"], 0);
  }
}

TEST_F(PackCommandTest, ComparesNnlshpWithWhatItsDepthAllows) {
  // Twelve of a pack's 120 tokens each: ten to a pack, or three and a pack a fourth full.
  write("h.txt", "12 120\n");
  const test::ProgramResult outcome = pack("--algorithm all --json --max-length 120 --histogram h.txt");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  for (const nlohmann::json& result : nlohmann::json::parse(outcome.output)) {
    const bool shallow = result["algorithm"] == "nnlshp";
    EXPECT_EQ(result["depth"], shallow ? 3 : 120);
    EXPECT_EQ(result["lower_bound"], shallow ? 40 : 12);
  }
  const std::string table = pack("--algorithm all --max-length 120 --histogram h.txt").output;
  EXPECT_THAT(table, HasSubstr("capacity 120, depth unlimited: no plan has fewer than 12 packs"));
  EXPECT_THAT(table, HasSubstr("capacity 120, depth 3: no plan has fewer than 40 packs"));
}

TEST_F(PackCommandTest, SaysWhichPackerIsLeftOutAndWhy) {
  write("h.txt", "5\n4\n");
  const test::ProgramResult outcome = pack("--algorithm all --json --depth 1 --histogram h.txt");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("nnlshp is left out"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("nnlshp")));
}

TEST_F(PackCommandTest, PrintsATableThatFitsATerminal) {
  const test::ProgramResult outcome =
      pack("--algorithm spfhp --depth 3 --histogram " + golden("wikipedia_512"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("9,094,695"));
  EXPECT_THAT(outcome.output, HasSubstr("89.441%"));
  EXPECT_THAT(outcome.output, HasSubstr("depth 3"));
  std::istringstream lines(outcome.output);
  std::string line;
  std::getline(lines, line);  // the name of the file, as long as it is
  while (std::getline(lines, line)) {
    const auto columns = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
    EXPECT_LE(columns, 80) << line;
  }
}

TEST_F(PackCommandTest, ReadsLengthsAndPairsAlike) {
  write("lengths.txt", "3\n7\n3\n");
  write("pairs.txt", "7,1\n3,2\n");
  const auto without_time = [](const std::string& text) {
    auto result = nlohmann::json::parse(text);
    result.erase("seconds");
    return result;
  };
  EXPECT_EQ(without_time(pack("--json --algorithm lpfhp --lengths lengths.txt").output),
            without_time(pack("--json --algorithm lpfhp --histogram pairs.txt").output));
}

TEST_F(PackCommandTest, ReadsADataset) {
  write("text.txt", "one two\n\nthree\n\nfour five six\n");
  write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\none\n");
  const test::ProgramResult prepared =
      test::run_program("prepare text.txt --vocab vocab.txt --max-length 9 --output data", directory_.path());
  ASSERT_EQ(prepared.exit_code, 0) << prepared.errors;
  const test::ProgramResult outcome = pack("--json --algorithm lpfhp --data data");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(nlohmann::json::parse(outcome.output)["sequences"], 3);
  EXPECT_EQ(nlohmann::json::parse(outcome.output)["tokens"], 12);
  EXPECT_EQ(nlohmann::json::parse(outcome.output)["capacity"], 9);
  EXPECT_EQ(nlohmann::json::parse(outcome.output)["packs"], 2);
}

TEST_F(PackCommandTest, ReadsCompressedFilesAndPipes) {
  directory_.write("lengths.txt.gz", test::gzip("3\n4\n5\n"));
  const test::ProgramResult packed = pack("--json --lengths lengths.txt.gz");
  EXPECT_EQ(nlohmann::json::parse(packed.output)["tokens"], 12) << packed.errors;
  const test::ProgramResult piped =
      test::run_program("pack --json --lengths /dev/stdin", directory_.path(), "3\n4\n5\n");
  EXPECT_EQ(nlohmann::json::parse(piped.output)["tokens"], 12) << piped.errors;
}

TEST_F(PackCommandTest, WritesAPlanThatItVerifies) {
  const std::string histogram = "--histogram " + golden("squad_1_1_384");
  ASSERT_EQ(pack("--algorithm lpfhp --depth 3 --output plan.json " + histogram).exit_code, 0);
  const test::ProgramResult right = pack("--json --verify plan.json " + histogram);
  ASSERT_EQ(right.exit_code, 0) << right.errors;
  EXPECT_EQ(nlohmann::json::parse(right.output)["algorithm"], "verified");
  EXPECT_EQ(nlohmann::json::parse(right.output)["packs"], 40631);
  EXPECT_EQ(nlohmann::json::parse(right.output)["depth"], 3);

  const test::ProgramResult shallow = pack("--verify plan.json --depth 2 " + histogram);
  EXPECT_EQ(shallow.exit_code, 2);
  EXPECT_THAT(shallow.errors, HasSubstr("over its depth"));

  const test::ProgramResult other = pack("--verify plan.json --histogram " + golden("wikipedia_512"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("does not pack"));

  auto plan = nlohmann::json::parse(io::read_file(path("plan.json")));
  plan["patterns"].erase(plan["patterns"].begin());
  write("plan.json", plan.dump());
  const test::ProgramResult lacking = pack("--verify plan.json " + histogram);
  EXPECT_EQ(lacking.exit_code, 2);
  EXPECT_THAT(lacking.errors, HasSubstr("every sequence once"));
}

TEST_F(PackCommandTest, RefusesBadHistograms) {
  expect_bad_histogram("", "bad.txt: the file is empty");
  expect_bad_histogram("0\n0\n", "bad.txt: there are no sequences");
  expect_bad_histogram("4\n-1\n", "bad.txt:2: a number of sequences must not be negative");
  expect_bad_histogram("4\nfour\n", "bad.txt:2: a number of sequences must be a whole number");
  expect_bad_histogram("4\n4.5\n", "bad.txt:2: a number of sequences must be a whole number");
  expect_bad_histogram(std::string("4\n\0\n", 4), "bad.txt:2");
  expect_bad_histogram("9223372036854775808\n", "bad.txt:1: there are more than 2^62 tokens");
  expect_bad_histogram("99999999999999999999\n", "bad.txt:1: a number of sequences is too large");
  expect_refusal("--histogram nowhere.txt", "cannot open nowhere.txt");
  expect_refusal("--histogram .", "it is a directory");
  expect_refusal("--data .", "no dataset.json");
}

TEST_F(PackCommandTest, RefusesWhatCannotBePacked) {
  write("h.txt", "1\n1\n1\n");
  expect_refusal("--histogram h.txt --max-length 2",
                 "h.txt: there are sequences of length 3, over --max-length 2");
  expect_refusal("--histogram h.txt --depth 0", "--depth must be at least 1");
  expect_refusal("--histogram h.txt --algorithm nnlshp --depth 1", "nnlshp cannot pack this");
  expect_refusal("--histogram h.txt --algorithm magic", "algorithm");
  expect_refusal("--histogram h.txt --lengths h.txt", "exactly one of");
  expect_refusal("", "exactly one of");
}

TEST_F(PackCommandTest, SaysWhyAPlanCannotBeWritten) {
  write("h.txt", "1\n");
  const test::ProgramResult outcome = pack("--histogram h.txt --algorithm lpfhp --output nowhere/plan.json");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("nowhere/plan.json"));
  EXPECT_EQ(outcome.output, "");
}

}  // namespace
}  // namespace plenum::cli
