#include "plenum/cli/progress_bar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/io/file.h"

#include "tests/support/temporary_directory.h"

namespace plenum::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DrawProgress, ShowsPhaseBarShareRateAndRemainingTime) {
  const PhaseStatus status{
      .phase = "tokenizing", .unit = "bytes", .total = 200'000'000, .done = 50'000'000, .per_second = 25e6};
  const std::string line = draw_progress(status, 79, false);
  EXPECT_EQ(line, "tokenizing  [========                           ]   25 %  25.0 MB/s  6.0 s left");
  EXPECT_THAT(draw_progress(status, 79, true), HasSubstr("\x1b[32m["));
}

TEST(DrawProgress, FitsAnyWidth) {
  for (const std::uint64_t total : {0, 1, 1000}) {
    const PhaseStatus status{
        .phase = "building sequences", .unit = "tokens", .total = total, .done = 700, .per_second = 9};
    for (int width = 0; width < 120; ++width) {
      EXPECT_LE(draw_progress(status, width, false).size(), static_cast<std::size_t>(width));
    }
  }
}

TEST(DrawProgress, CountsOtherUnitsAndUnknownTotals) {
  EXPECT_EQ(draw_progress({.phase = "x", .unit = "merges", .total = 0, .done = 1234, .per_second = 2000}, 79,
                          false),
            "x  1,234 merges  2,000 merges/s");
}

TEST(ProgressBar, WritesPlainLinesWhereThereIsNoTerminal) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "log";
  std::FILE* file = std::fopen(path.c_str(), "w");
  {
    ProgressBar bar(file);
    bar.begin("tokenizing", "bytes", 100);
    for (std::uint64_t done = 0; done <= 100; ++done) bar.advance_to(done);
    bar.note("a fact");
    bar.end();
  }
  std::fclose(file);
  EXPECT_EQ(io::read_file(path), "a fact\n");
}

}  // namespace
}  // namespace plenum::cli
