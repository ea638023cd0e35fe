#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "plenum/base/check.h"
#include "plenum/data/batches/histogram_file.h"
#include "plenum/data/batches/packing_plan_file.h"
#include "plenum/io/file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::data {
namespace {

using testing::HasSubstr;

/// A directory that is gone after the test.
class PackingFiles : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_ / name; }

  std::string write(const std::string& name, const std::string& text) const {
    return directory_.write(name, text);
  }

  std::string plan_error(const std::string& text) const {
    const std::string file = write("plan.json", text);
    return test::user_error_of([&] { read_packing_plan(file); });
  }

  test::TemporaryDirectory directory_;
};

TEST_F(PackingFiles, PlanComesBackAsItWasWritten) {
  const packing::PackingPlan plan{
      .capacity = 9, .depth = 3, .patterns = {{{5, 3, 1}, 2}, {{9}, std::uint64_t{1} << 60}}};
  io::write_file(path("plan.json"), print_packing_plan(plan));
  const packing::PackingPlan back = read_packing_plan(path("plan.json"));
  EXPECT_EQ(back.capacity, 9);
  EXPECT_EQ(back.depth, 3);
  ASSERT_EQ(back.patterns.size(), 2u);
  EXPECT_EQ(back.patterns[0].lengths, (std::vector<std::int32_t>{5, 3, 1}));
  EXPECT_EQ(back.patterns[0].count, 2u);
  EXPECT_EQ(back.patterns[1].count, std::uint64_t{1} << 60);
}

TEST_F(PackingFiles, PlanHasADocumentedForm) {
  EXPECT_EQ(print_packing_plan({.capacity = 9, .depth = 3, .patterns = {{{5, 3}, 2}, {{9}, 1}}}),
            "{\"capacity\": 9, \"depth\": 3, \"patterns\": [\n"
            "{\"lengths\": [5, 3], \"count\": 2},\n"
            "{\"lengths\": [9], \"count\": 1}\n]}\n");
}

TEST_F(PackingFiles, BadPlanIsNamed) {
  EXPECT_THAT(plan_error("{\"capacity\": 9,\n oops"), HasSubstr("plan.json:2: this is not JSON"));
  EXPECT_THAT(plan_error(""), HasSubstr("not JSON"));
  EXPECT_THAT(plan_error("[]"), HasSubstr("\"capacity\" is missing"));
  EXPECT_THAT(plan_error("{\"capacity\": -9}"), HasSubstr("the capacity must be a whole number"));
  EXPECT_THAT(plan_error("{\"capacity\": 9.5}"), HasSubstr("the capacity must be a whole number"));
  EXPECT_THAT(plan_error("{\"capacity\": 9, \"depth\": 2, \"patterns\": {}}"), HasSubstr("list of patterns"));
  const auto with_pattern = [&](const std::string& pattern) {
    return plan_error("{\"capacity\": 9, \"depth\": 2, \"patterns\": [" + pattern + "]}");
  };
  EXPECT_THAT(with_pattern("7"), HasSubstr("pattern 1: the key \"count\" is missing"));
  EXPECT_THAT(with_pattern("{\"lengths\": [5], \"count\": 0}"), HasSubstr("pattern 1: the count"));
  EXPECT_THAT(with_pattern("{\"lengths\": [], \"count\": 1}"), HasSubstr("list of lengths"));
  EXPECT_THAT(with_pattern("{\"lengths\": [5, 5], \"count\": 1}"), HasSubstr("over the capacity"));
  EXPECT_THAT(with_pattern("{\"lengths\": [1, 1, 1], \"count\": 1}"), HasSubstr("over the depth"));
  EXPECT_THAT(with_pattern("{\"lengths\": [4294967301], \"count\": 1}"), HasSubstr("a length must be"));
  EXPECT_THAT(with_pattern("{\"lengths\": [5], \"count\": 18446744073709551615}"), HasSubstr("the count"));
}

TEST_F(PackingFiles, LengthsAreReadInPieces) {
  std::string text;
  for (int i = 0; i < 300000; ++i) text += std::to_string(1 + i % 100) + "\n";
  const packing::LengthHistogram histogram =
      read_histogram_file(write("lengths.txt", text), packing::HistogramText::Form::Lengths);
  for (std::size_t length = 1; length <= 100; ++length) EXPECT_EQ(histogram.counts[length], 3000u);
}

TEST_F(PackingFiles, UnreadableFileIsNamed) {
  const auto read = [](const std::string& file) {
    return test::user_error_of([&] { read_histogram_file(file, packing::HistogramText::Form::Histogram); });
  };
  EXPECT_THAT(read(path("nowhere.txt")), HasSubstr("nowhere.txt: No such file"));
  EXPECT_THAT(read(directory_.path()), HasSubstr("it is a directory"));
}

}  // namespace
}  // namespace plenum::data
