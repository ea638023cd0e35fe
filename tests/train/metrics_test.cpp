#include "plenum/train/metrics.h"

#include <gtest/gtest.h>

#include "plenum/io/file.h"

#include "tests/support/temporary_directory.h"

namespace plenum::train {
namespace {

constexpr const char* kFirst = "{\"step\":1}\n{\"step\":2}\n";

TEST(StepLines, DropsWhatLiesBehindAStep) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("lines", std::string(kFirst) + "{\"step\":3}\n{\"step\":4}\n");
  StepLines lines(path, 2);
  EXPECT_EQ(io::read_file(path), kFirst);
  lines.append("{\"step\":3,\"again\":true}");
  EXPECT_EQ(io::read_file(path), std::string(kFirst) + "{\"step\":3,\"again\":true}\n");
}

TEST(StepLines, DropsALineThatWasCut) {
  const test::TemporaryDirectory directory;
  for (const char* cut : {"{\"ste", "{\"step\":", "{\"step\":3}", "nonsense\n", "{}\n"}) {
    const std::string path = directory.write("lines", std::string(kFirst) + cut);
    const StepLines lines(path, 9);
    EXPECT_EQ(io::read_file(path), kFirst) << cut;
  }
}

TEST(StepLines, BeginsEmpty) {
  const test::TemporaryDirectory directory;
  for (const char* earlier : {"", "\n", "{\"step\":1}\n"}) {
    const std::string path = directory.write("lines", earlier);
    const StepLines lines(path, 0);
    EXPECT_EQ(io::read_file(path), "");
  }
}

}  // namespace
}  // namespace plenum::train
