#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plenum/calibrate/machine_file.h"
#include "plenum/plan/op.h"

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace plenum::cli {
namespace {

using testing::HasSubstr;

class CalibrateCommandTest : public testing::Test {
 protected:
  test::ProgramResult run_calibrate(const std::string& arguments) const {
    return test::run_program("calibrate " + arguments, directory_.path());
  }

  test::TemporaryDirectory directory_;
};

TEST_F(CalibrateCommandTest, WritesAFileThatPlansCanBeMadeWith) {
  const test::ProgramResult outcome =
      run_calibrate("--ranks 1 --ranks 2 --threads 1 --seconds 0.4 --output machine.toml");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("1 rank, 1 thread"));
  EXPECT_THAT(outcome.output, HasSubstr("2 ranks, 1 thread"));
  EXPECT_THAT(outcome.output, HasSubstr("all-reduce"));
  EXPECT_THAT(outcome.output, HasSubstr("Written to machine.toml."));
  const calibrate::Machine machine = calibrate::read_machine(directory_ / "machine.toml");
  ASSERT_EQ(machine.settings.size(), 2);
  EXPECT_TRUE(machine.settings[0].links.empty());
  EXPECT_EQ(machine.settings[1].ranks, 2);
  EXPECT_EQ(machine.settings[1].links.size(), calibrate::kNumLinkOperations);
  EXPECT_GT(machine.memory_bytes, 1e6);
  EXPECT_GT(machine.overhead_bytes, 1e6);
  const plan::Cluster cluster =
      calibrate::read_cluster(directory_ / "machine.toml", {.ranks = 2, .threads = 1});
  EXPECT_GT(cluster.device.peak_flops, 0);
  EXPECT_GT(cluster.within_node.bytes_per_second, 0);
}

TEST_F(CalibrateCommandTest, PrintsJson) {
  const test::ProgramResult outcome = run_calibrate("--ranks 1 --threads 1 --seconds 0.2 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const nlohmann::json report = nlohmann::json::parse(outcome.output);
  ASSERT_EQ(report["settings"].size(), 1);
  EXPECT_EQ(report["settings"][0]["device"], "cpu");
  EXPECT_GT(report["settings"][0]["peak_flops"], 0);
}

TEST_F(CalibrateCommandTest, RefusesWhatIsNoNumberOfRanks) {
  for (const std::string ranks : {"0", "many", "-1"}) {
    const test::ProgramResult outcome = run_calibrate("--seconds 0.1 --ranks=" + ranks);
    EXPECT_EQ(outcome.exit_code, 2) << ranks;
    EXPECT_THAT(outcome.errors, HasSubstr("ranks")) << ranks;
    EXPECT_EQ(outcome.output, "") << ranks;
  }
}

}  // namespace
}  // namespace plenum::cli
