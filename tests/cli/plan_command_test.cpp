#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plenum/io/file.h"

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kCluster = R"([cluster]
name = "two small nodes"
provenance = "datasheet"
nodes = 2
devices-per-node = 2
memory-bytes = 16e9
overhead-bytes = 20e6

[device]
kind = "cpu"
threads = 1
peak-flops = 50e9
peak-bytes-per-second = 20e9
launch-seconds = 1e-6

[within-node]
latency-seconds = 5e-6
bytes-per-second = 5e9

[between-nodes]
latency-seconds = 20e-6
bytes-per-second = 1e9
)";

class PlanCommandTest : public TrainingProgram {
 protected:
  PlanCommandTest() { directory_.write("cluster.toml", kCluster); }

  static std::string arguments(const std::string& more) {
    return "plan --cluster cluster.toml --data data --model bert-tiny --layers 2 --width 16 --heads 2 "
           "--max-positions 32 --global-batch 16 " +
           more;
  }
  nlohmann::json plan_json(const std::string& more) const {
    const test::ProgramResult planned = plenum(arguments(more + " --json"));
    EXPECT_EQ(planned.exit_code, 0) << planned.errors;
    return nlohmann::json::parse(planned.output);
  }
};

TEST_F(PlanCommandTest, RanksPlansAndSaysWhatTheyTake) {
  const nlohmann::json report = plan_json("--top 5 --price 2");
  EXPECT_EQ(report["ranks"], 4);
  ASSERT_EQ(report["plans"].size(), 5U);
  double before = 0;
  for (const nlohmann::json& plan : report["plans"]) {
    EXPECT_EQ(plan["dp"].get<int>() * plan["tp"].get<int>() * plan["pp"].get<int>(), 4);
    const double seconds = plan["step_seconds"];
    EXPECT_GE(seconds, before);
    EXPECT_LE(plan["bound_seconds"].get<double>(), seconds * (1 + 1e-9));
    EXPECT_LE(plan["least_step_seconds"].get<double>(), seconds * (1 + 1e-9));
    EXPECT_NEAR(plan["tokens_per_second"].get<double>() * seconds, report["tokens_per_step"].get<double>(),
                1e-3);
    // Devices x hours for a billion tokens x price.
    const double hours = 1e9 / plan["tokens_per_second"].get<double>() / 3600;
    EXPECT_NEAR(plan["cost_per_billion_tokens"].get<double>(), 4 * 2 * hours, 1e-6 * hours);
    EXPECT_GT(plan["memory_bytes"].get<double>(), 0);
    before = seconds;
  }
  const test::ProgramResult text = plenum(arguments("--explain --svg step.svg"));
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("two small nodes (from datasheets)"));
  EXPECT_THAT(text.output, HasSubstr("communication, latency"));
  EXPECT_THAT(text.output, HasSubstr("link.bandwidth=2x"));
  EXPECT_THAT(io::read_file(directory_ / "step.svg"), HasSubstr("<svg"));
}

TEST_F(PlanCommandTest, ExplainsWhichRankHoldsWhat) {
  const nlohmann::json report = plan_json("--explain");
  const nlohmann::json& best = report["plans"][0];
  EXPECT_EQ(best["ranks_of_process"], 1) << "two nodes";
  ASSERT_EQ(report["memory_of_ranks"].size(), best["tp"].get<std::size_t>() * best["pp"].get<std::size_t>());
  for (const nlohmann::json& rank : report["memory_of_ranks"]) {
    EXPECT_GT(rank["memory"]["parameters"].get<double>(), 0);
    EXPECT_LT(rank["bytes"].get<double>(), best["memory_bytes"].get<double>());
  }
  EXPECT_LE(best["expected_memory_bytes"].get<double>(), best["memory_bytes"].get<double>());

  const nlohmann::json of_node = plan_json("--ranks 2")["plans"][0];
  EXPECT_EQ(of_node["ranks_of_process"], 2) << "one node: --ranks 2 starts one process";
  const test::ProgramResult text = plenum(arguments("--ranks 2 --explain"));
  EXPECT_THAT(text.output, HasSubstr("one process, with all ranks as threads (--ranks), takes"));
  EXPECT_THAT(text.output, HasSubstr("What ranks of the first replica plan"));
}

TEST_F(PlanCommandTest, SaysTheMemoryThatTrainPlans) {
  const nlohmann::json plan = plan_json("--ranks 2 --output plan.toml")["plans"][0];
  const test::ProgramResult trained =
      plenum("train --plan plan.toml --run run --steps 2 --learning-rate 1e-3 --json --quiet");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_EQ(nlohmann::json::parse(trained.output)["memory"]["planned_bytes"], plan["planned_memory_bytes"]);
}

TEST_F(PlanCommandTest, SaysTheMemoryThatTrainPlansForWorkOnMatrices) {
  for (const std::string optimizer : {"muon", "kfac --kfac-every 2", "soap --soap-every 3"}) {
    const nlohmann::json plan =
        plan_json("--ranks 2 --output plan.toml --optimizer " + optimizer)["plans"][0];
    const test::ProgramResult trained = plenum("train --plan plan.toml --run run-" + optimizer.substr(0, 4) +
                                               " --steps 2 --learning-rate 1e-3 --json --quiet");
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    EXPECT_EQ(nlohmann::json::parse(trained.output)["memory"]["planned_bytes"], plan["planned_memory_bytes"])
        << optimizer;
  }
}

TEST_F(PlanCommandTest, SaysWhatWorkOnMatricesAdds) {
  const nlohmann::json report = plan_json("--top 40 --optimizer kfac --fill deferred");
  std::size_t num_filled = 0;
  for (const nlohmann::json& plan : report["plans"]) {
    const nlohmann::json& work = plan["matrix_work"];
    EXPECT_GT(work["overhead_seconds"].get<double>(), 0);
    EXPECT_GT(work["overhead_bytes"].get<double>(), 0);
    EXPECT_GE(work["refresh_steps"].get<double>(), 1);
    EXPECT_EQ(plan["tp"], 1) << "K-FAC takes whole matrices";
    if (plan["pp"] == 1) EXPECT_FALSE(work["fills_bubbles"].get<bool>());
    num_filled += work["fills_bubbles"].get<bool>() ? 1 : 0;
  }
  EXPECT_GT(num_filled, 0U);
  const test::ProgramResult text = plenum(arguments("--optimizer kfac --fill deferred --explain"));
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("What K-FAC adds to the same layout without it"));
  EXPECT_THAT(text.output, HasSubstr("a refresh"));
}

TEST_F(PlanCommandTest, WritesAPlanThatTrainRunsAsItIs) {
  const nlohmann::json report = plan_json("--ranks 2 --output plan.toml");
  const nlohmann::json& best = report["plans"][0];
  const test::ProgramResult printed = plenum("train --plan plan.toml --print-config");
  ASSERT_EQ(printed.exit_code, 0) << printed.errors;
  EXPECT_THAT(printed.output, HasSubstr("\nranks = 2\n"));
  EXPECT_THAT(printed.output, HasSubstr("\ntp = " + best["tp"].dump() + "\n"));
  EXPECT_THAT(printed.output, HasSubstr("\npp = " + best["pp"].dump() + "\n"));
  EXPECT_THAT(printed.output, HasSubstr("\nglobal-batch = \"16\"\n"));
  EXPECT_THAT(printed.output, HasSubstr("\nwidth = 16\n"));
  EXPECT_EQ(plenum("train --config plan.toml --print-config").output, printed.output);
  const test::ProgramResult trained =
      plenum("train --plan plan.toml --run run --steps 2 --learning-rate 1e-3");
  EXPECT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.output, HasSubstr("trained 2 of 2 steps"));
}

TEST_F(PlanCommandTest, AnswersWhatAChangedClusterWouldDo) {
  const nlohmann::json report =
      plan_json("--what-if link.bandwidth=4x --what-if device.flops=2x --what-if memory=1e6");
  const double now = report["plans"][0]["step_seconds"];
  ASSERT_EQ(report["what_if"].size(), 3U);
  for (int i = 0; i < 2; ++i) {
    const nlohmann::json& change = report["what_if"][i];
    EXPECT_LE(change["same_plan_seconds"].get<double>(), now);
    EXPECT_LE(change["best"]["step_seconds"].get<double>(), change["same_plan_seconds"].get<double>());
  }
  EXPECT_FALSE(report["what_if"][2].contains("best")) << "a megabyte is too little";
}

TEST_F(PlanCommandTest, PlansFromLengthsAlone) {
  directory_.write("lengths.txt", "0\n0\n0\n10\n20\n30\n5\n");
  const test::ProgramResult planned = plenum(
      "plan --cluster cluster.toml --histogram lengths.txt --max-length 32 --model bert-tiny --global-batch "
      "256tok --ranks 2");
  EXPECT_EQ(planned.exit_code, 0) << planned.errors;
  EXPECT_THAT(planned.output, HasSubstr("bert-tiny on lengths.txt"));
}

TEST_F(PlanCommandTest, RefusesImpossibleWishesInOneLine) {
  expect_error(arguments("--memory-limit 1MB"), "no layout of bert-tiny over 4 ranks fits 1.0 MB per rank");
  expect_error(arguments("--ranks 5"), "cluster two small nodes has 4 devices: --ranks is 5");
  std::string alone = kCluster;
  alone.erase(alone.find("[between-nodes]"));
  alone.replace(alone.find("nodes = 2"), 9, "nodes = 1");
  directory_.write("alone.toml", alone);
  expect_error("plan --cluster alone.toml --nodes 2 --data data --model bert-tiny --global-batch 16",
               "alone.toml is one node without a link to others");
  expect_error(arguments("--what-if link.speed=2x"), "can change link.bandwidth, link.latency");
  expect_error(arguments("--what-if memory=none"), "as a factor (2x)");
  expect_error(arguments("--optimizer kfac --kfac-base muon"), "plans of K-FAC are made with --kfac-base");
  expect_error(arguments("--optimizer muon --fill deferred"), "--fill is for --optimizer kfac and soap");
  expect_error(arguments("--optimizer soap --fill fresh"), "--fill fresh is for --optimizer kfac");
  std::string on_gpus = arguments("--optimizer soap");
  on_gpus.replace(on_gpus.find("cluster.toml"), std::string("cluster.toml").size(),
                  PLENUM_SOURCE_DIR "/recipes/clusters/h200.toml");
  expect_error(on_gpus, "plans of SOAP are made for CPUs");
  expect_error(arguments("--histogram lengths.txt"), "either --data DIR or --histogram FILE");
  expect_error("plan --data data --model bert-tiny --global-batch 16", "--cluster FILE");
  expect_error("plan --cluster cluster.toml --data data --model bert-tiny", "--global-batch");
}

}  // namespace
}  // namespace plenum::cli
