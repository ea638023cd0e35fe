#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plenum/io/file.h"
#include "plenum/schedule/generate/generator.h"

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace plenum::cli {
namespace {

using testing::HasSubstr;

/// Runs the program as a user does, in a directory of its own that is gone after the test.
class SimulateCommandTest : public testing::Test {
 protected:
  test::ProgramResult simulate(const std::string& arguments) const {
    return test::run_program("simulate " + arguments, directory_.path());
  }

  nlohmann::json simulate_json(const std::string& arguments) const {
    const test::ProgramResult outcome = simulate(arguments + " --json");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return nlohmann::json::parse(outcome.output);
  }

  static double path_ms(const nlohmann::json& report) {
    double sum = 0;
    for (const nlohmann::json& action : report["critical_path"]) sum += action["ms"].get<double>();
    return sum;
  }

  /// Expects one line on standard error that says `reason`, exit code 2, and no file.
  void expect_refusal(const std::string& arguments, const std::string& reason) const {
    const test::ProgramResult outcome = simulate(arguments + " --svg drawing.svg");
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.output, "") << arguments;
    EXPECT_THAT(outcome.errors, HasSubstr(reason)) << arguments;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
    EXPECT_FALSE(std::filesystem::exists(directory_ / "drawing.svg")) << arguments;
  }

  /// The text of a schedule that the program itself wrote.
  std::string written_schedule(const std::string& arguments, const std::string& name) const {
    EXPECT_EQ(simulate(arguments + " --json --output " + name).exit_code, 0);
    return io::read_file(directory_ / name);
  }

  void expect_bad_schedule(std::string text, const std::string& from, const std::string& to,
                           const std::string& reason) const {
    const std::size_t place = text.find(from);
    ASSERT_NE(place, std::string::npos) << from << " in " << text;
    text.replace(place, from.size(), to);
    directory_.write("bad.txt", text);
    expect_refusal("--from bad.txt", reason);
  }

  test::TemporaryDirectory directory_;
};

const std::string kProfile =
    "--profile " PLENUM_SOURCE_DIR "/recipes/profiles/bert-base-p100.csv --layers-per-stage 3 --batch 32 ";

TEST_F(SimulateCommandTest, PrintsStableJsonKeys) {
  const nlohmann::json plain = simulate_json("--schedule 1f1b --stages 4 --micro-batches 4 " + kProfile);
  for (const char* key :
       {"schedule", "stages", "micro_batches", "step_ms", "utilization", "bubble_fraction", "refresh_steps",
        "refresh_bound", "violations", "peak_activation_micro_batches", "critical_path"}) {
    EXPECT_TRUE(plain.contains(key)) << key;
  }
  EXPECT_EQ(plain["schedule"], "1f1b");
  EXPECT_EQ(plain["stages"], 4);
  EXPECT_EQ(plain["micro_batches"], 4);
  EXPECT_EQ(plain["violations"], 0);
  EXPECT_EQ(plain["peak_activation_micro_batches"], 4);
  EXPECT_TRUE(plain["refresh_steps"].is_null());
  EXPECT_NEAR(plain["step_ms"], 3 * 7 * (9.748 + 16.45), 1e-6);
  EXPECT_NEAR(plain["utilization"], 4.0 / 7, 1e-9);
  EXPECT_NEAR(plain["bubble_fraction"], 3.0 / 7, 1e-9);
  EXPECT_NEAR(path_ms(plain), plain["step_ms"], 1e-6);
}

TEST_F(SimulateCommandTest, CountsTheWayOfMessagesIntoTheCriticalPath) {
  const nlohmann::json report = simulate_json("--stages 4 --micro-batches 8 --latency-us 500");
  EXPECT_NEAR(path_ms(report), report["step_ms"], 1e-6);
  const test::ProgramResult drawn = simulate("--stages 4 --latency-us 500 --all-lanes --width 300");
  EXPECT_THAT(drawn.output, HasSubstr("message"));
}

TEST_F(SimulateCommandTest, CountsActivationsByTheShareOfEachRank) {
  EXPECT_EQ(
      simulate_json(
          "--schedule 1f1b --stages 2 --stage-layers 1,9 --micro-batches 4")["peak_activation_micro_batches"],
      2);
  EXPECT_EQ(simulate_json("--schedule gpipe --stages 2 --stage-layers 1,9 --micro-batches 4")
                ["peak_activation_micro_batches"],
            4);
}

TEST_F(SimulateCommandTest, FillsTheBubblesOfThePublishedProfile) {
  for (const auto& [schedule, bound] : {std::pair("gpipe", 2.21), {"1f1b", 2.21}, {"chimera", 5.28}}) {
    const nlohmann::json filled = simulate_json(
        std::string("--stages 4 --micro-batches 4 --fill kfac --schedule ") + schedule + " " + kProfile);
    EXPECT_NEAR(filled["refresh_bound"], bound, 0.01) << schedule;
    EXPECT_LE(filled["refresh_steps"], 1.1 * filled["refresh_bound"].get<double>()) << schedule;
    EXPECT_GE(filled["utilization"], 0.95) << schedule;
    EXPECT_EQ(filled["violations"], 0) << schedule;
  }
}

TEST_F(SimulateCommandTest, SaysWhatFillingKeepsAliveAndWhatPreconditioningCosts) {
  const std::string options = "--stages 4 --micro-batches 4 --schedule 1f1b " + kProfile;
  const nlohmann::json filled = simulate_json(options + "--fill kfac");
  EXPECT_EQ(filled["unfilled_step_ms"], simulate_json(options)["step_ms"]);
  EXPECT_GT(filled["preconditioned_step_ms"], filled["unfilled_step_ms"]);
  EXPECT_NEAR(
      filled["preconditioning_percent"],
      100 * (filled["preconditioned_step_ms"].get<double>() / filled["unfilled_step_ms"].get<double>() - 1),
      1e-9);
  EXPECT_GE(filled["filled_percent"], filled["preconditioning_percent"].get<double>() - 1e-6);
  EXPECT_GT(filled["kept_layers"], 0);
  EXPECT_NEAR(filled["kept_micro_batches"], filled["kept_layers"].get<double>() / 3, 1e-9);
  EXPECT_GT(filled["kept_bytes"], 0);
  const test::ProgramResult drawn = simulate(options + "--fill kfac");
  EXPECT_THAT(drawn.output, HasSubstr("preconditioning makes a step"));
  EXPECT_THAT(drawn.output,
              HasSubstr(fmt::format("kept for it    {} layers", filled["kept_layers"].get<int>())));
  const nlohmann::json shampoo = simulate_json(options + "--fill shampoo");
  EXPECT_EQ(shampoo["kept_layers"], 0);
  EXPECT_GT(shampoo["kept_bytes"], 0);
  EXPECT_TRUE(simulate_json("--fill kfac --micro-batches 4")["kept_bytes"].is_null());
}

TEST_F(SimulateCommandTest, ReadsBackWhatItWrote) {
  for (const std::string name : {"filled.txt", "filled.json"}) {
    const std::string options = "--stages 4 --micro-batches 4 --schedule chimera --fill kfac " + kProfile;
    const std::string text = written_schedule(options, name);
    const nlohmann::json once = simulate_json(options);
    const nlohmann::json again = simulate_json(kProfile + "--from " + name);
    EXPECT_EQ(again["violations"], 0);
    EXPECT_EQ(again["step_ms"], once["step_ms"]);
    EXPECT_EQ(again["stages"], 4);
    EXPECT_EQ(again["peak_activation_micro_batches"], once["peak_activation_micro_batches"]);
  }
}

TEST_F(SimulateCommandTest, DrawsForTerminalBrowserAndPerfetto) {
  const test::ProgramResult outcome =
      simulate("--stages 3 --micro-batches 4 --svg drawing.svg --trace trace.json --width 90");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("critical path"));
  EXPECT_EQ(outcome.output.find('\033'), std::string::npos);
  EXPECT_THAT(io::read_file(directory_ / "drawing.svg"), testing::StartsWith("<svg"));
  EXPECT_FALSE(nlohmann::json::parse(io::read_file(directory_ / "trace.json"))["traceEvents"].empty());
}

TEST_F(SimulateCommandTest, GivesOneStepTime) {
  const std::string options = "--schedule chimera --stages 4 --micro-batches 4 --fill kfac " + kProfile;
  const double step_ms = simulate_json(options + "--svg drawing.svg")["step_ms"];
  EXPECT_THAT(io::read_file(directory_ / "drawing.svg"), HasSubstr(fmt::format("of {:.1f} ms", step_ms)));
}

TEST_F(SimulateCommandTest, DrawsAScheduleWithoutCosts) {
  const std::string options = "--forward-ms 0 --backward-ms 0 ";
  const test::ProgramResult outcome = simulate(options + "--svg drawing.svg --trace trace.json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output.find("nan"), std::string::npos) << outcome.output;
  EXPECT_EQ(io::read_file(directory_ / "drawing.svg").find("nan"), std::string::npos);
  EXPECT_EQ(simulate_json(options)["utilization"], 0);
}

TEST_F(SimulateCommandTest, GeneratesEverySchedule) {
  for (const schedule::Generator& generator : schedule::all_generators()) {
    EXPECT_EQ(simulate_json(fmt::format("--schedule {}", generator.name))["violations"], 0) << generator.name;
  }
}

TEST_F(SimulateCommandTest, GivesEveryScheduleTheSameModelOnOneRank) {
  // Two layers, eight micro-batches, 1 and 2 ms.
  for (const schedule::Generator& generator : schedule::all_generators()) {
    if (generator.depth_multiple > 1) continue;
    EXPECT_NEAR(simulate_json(fmt::format("--stages 1 --schedule {}", generator.name))["step_ms"], 48, 1e-9)
        << generator.name;
  }
}

TEST_F(SimulateCommandTest, TakesSchedulesWithAnyNumberOfFactors) {
  directory_.write("kfac.txt", R"(plenum-schedule 1
layers 1
micro-batches 1
preconditioner kfac
factors 2
rank 0 holds 0
0 compute: F0.0 B0.0 KA0.0[0]/0 KB0.0[0]/0 KA0.0[0]/1 KB0.0[0]/1 KI0[0]/0 KI0[0]/1 P0 NS0 U0
0 data: N
)");
  EXPECT_NEAR(simulate_json("--from kfac.txt")["step_ms"], 1 + 2 + 2.5 + 7 + 0.7, 1e-9);
}

TEST_F(SimulateCommandTest, CountsInWords) {
  const test::ProgramResult outcome = simulate("--schedule single --micro-batches 1");
  EXPECT_THAT(outcome.output, HasSubstr("single, 1 micro-batch: 1 rank, 1 step,"));
  EXPECT_THAT(outcome.output, HasSubstr("on 1 rank,"));
}

TEST_F(SimulateCommandTest, SaysWhichOptionsItDoesNotUse) {
  written_schedule("--stages 2 --micro-batches 2", "written.txt");
  const test::ProgramResult read = simulate("--from written.txt --stages 3 --schedule gpipe --batch 8");
  EXPECT_EQ(read.exit_code, 0);
  EXPECT_EQ(read.errors, "plenum: not used with --from: --schedule, --stages\n");
  EXPECT_EQ(simulate("--compare --schedule gpipe").errors, "plenum: not used with --compare: --schedule\n");
}

TEST_F(SimulateCommandTest, MakesACycleLongerThanAskedOnlyWhereNoRefreshFits) {
  // The work of a refresh is 4/3 of a step's idle time.
  const std::string options = "--fill kfac --micro-batches 4 --curvature-ms 1.5 --inversion-ms 6 ";
  EXPECT_EQ(simulate_json(options + "--max-cycle 2")["steps"], 2);
  EXPECT_EQ(simulate_json(options + "--max-cycle 3")["steps"], 3);
  EXPECT_EQ(simulate_json(options + "--max-cycle 1")["steps"], 3);
}

TEST_F(SimulateCommandTest, RefusesALimitThatItCannotKeep) {
  expect_refusal("--fill kfac --fill-memory-mib 1", "--profile");
  expect_refusal("--fill-memory-mib 1 " + kProfile, "--fill");
  expect_refusal("--fill shampoo --fill-memory-mib 1 " + kProfile, "the limit is 1.0 MiB");
  expect_refusal("--fill kfac --fill-memory-mib 1 " + kProfile, "the limit is 1.0 MiB");
}

TEST_F(SimulateCommandTest, WritesWhatOneRankTrainsInPlaceOfAPipeline) {
  const std::string options = "--stages 2 --micro-batches 4 --fill kfac --drains ";
  const nlohmann::json filled = simulate_json(options);
  const nlohmann::json serial = simulate_json(options + "--on-one-rank --output serial.txt");
  EXPECT_EQ(serial["ranks"].size(), 1U);
  EXPECT_EQ(serial["steps"], filled["steps"]);
  EXPECT_GT(serial["step_ms"], filled["step_ms"]);
  EXPECT_EQ(simulate_json("--from serial.txt")["step_ms"], serial["step_ms"]);
  expect_refusal("--on-one-rank", "K-FAC");
}

TEST_F(SimulateCommandTest, ComparesAllSchedules) {
  const test::ProgramResult outcome = simulate("--compare --stages 4 --micro-batches 8 --layers-per-stage 2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.errors, "");
  for (const schedule::Generator& generator : schedule::all_generators()) {
    EXPECT_THAT(outcome.output, HasSubstr(std::string(generator.name)));
  }
}

TEST_F(SimulateCommandTest, LeavesOutOfTheComparisonWhatCannotBe) {
  const test::ProgramResult outcome = simulate("--compare --stages 3 --micro-batches 6 --layers-per-stage 2");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.errors, HasSubstr("chimera is left out"));
  EXPECT_THAT(outcome.output, HasSubstr("zb-h1"));
}

TEST_F(SimulateCommandTest, RefusesBadSchedulesWithFileAndLine) {
  const std::string text = written_schedule("--schedule gpipe --stages 2 --micro-batches 2", "good.txt");
  expect_bad_schedule(text, "B0.1", "Q0.1", "bad.txt:");
  expect_bad_schedule(text, "B0.1", "Q0.1", "unknown action 'Q0.1'");
  expect_bad_schedule(text, "holds 1", "holds 0", "stage 1");
  expect_bad_schedule(text, "micro-batches 2", "micro-batches 0", "bad.txt:");
  expect_bad_schedule(text, "B0.0 B0.1", "B0.1", "bad.txt:");
}

TEST_F(SimulateCommandTest, ReportsAViolationAsJsonToo) {
  std::string text = written_schedule("--schedule gpipe --stages 2 --micro-batches 2", "good.txt");
  text.replace(text.find("F1.0 F1.1"), 9, "F1.1");
  directory_.write("bad.txt", text);
  const test::ProgramResult outcome = simulate("--from bad.txt --json");
  EXPECT_EQ(outcome.exit_code, 2);
  const nlohmann::json report = nlohmann::json::parse(outcome.output);
  EXPECT_GT(report["violations"], 0);
  EXPECT_TRUE(report["step_ms"].is_null());
  EXPECT_THAT(outcome.errors, HasSubstr(report["first_violation"].get<std::string>()));
}

TEST_F(SimulateCommandTest, RefusesBadProfilesWithFileAndLine) {
  const std::string header =
      "bs,time_f,time_b,time_kron,time_inv,time_prec,mem_param,mem_act,mem_peak_err,mem_save_err,mem_kron\n";
  directory_.write("short.csv", "bs,time_f\n1,2\n");
  expect_refusal("--profile short.csv", "short.csv:1: ");
  directory_.write("negative.csv", header + "32,-1,1,1,1,1,1,1,1,1,1\n");
  expect_refusal("--profile negative.csv", "negative.csv:2: ");
  directory_.write("good.csv", header + "32,1,1,1,1,1,1,1,1,1,1\n");
  expect_refusal("--profile good.csv --batch 64", "64");
  expect_refusal("--profile none.csv", "none.csv");
}

TEST_F(SimulateCommandTest, RefusesWhatCannotBeGenerated) {
  expect_refusal("--schedule 1f1", "did you mean '1f1b'");
  expect_refusal("--micro-batches 0", "micro-batches");
  expect_refusal("--stages 0", "stages");
  expect_refusal("--schedule chimera --stages 3", "even");
  expect_refusal("--schedule interleaved --chunks 3", "--chunks");
  expect_refusal("--schedule interleaved --layers-per-stage 1", "--layers-per-stage");
  expect_refusal("--stage-layers 3,,3", "--stage-layers");
  expect_refusal("--stages 2 --stage-layers 3,3,3", "layers");
}

}  // namespace
}  // namespace plenum::cli
