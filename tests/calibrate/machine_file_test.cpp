#include "plenum/calibrate/machine_file.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/io/file.h"
#include "plenum/plan/make_op.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::calibrate {
namespace {

using plan::OpKind;
using ::testing::HasSubstr;

Machine some_machine() {
  Machine machine{.name = "a \"machine\" \\ of ours",
                  .date = "2026-11-19",
                  .memory_bytes = 2e10,
                  .overhead_bytes = 12e6,
                  .step_overhead_seconds = 0.001,
                  .settings = {}};
  for (const std::size_t ranks : {1U, 4U}) {
    Setting setting;
    setting.ranks = ranks;
    setting.threads = 4 / ranks;
    setting.model.peak_flops = 2e11 / static_cast<double>(ranks);
    setting.model.peak_bytes_per_second = 3e10;
    setting.model.launch_seconds = 2e-6;
    setting.model.set_points(OpKind::MlpForward, {{1024, 256, 1024, 0.75}, {64, 128, 512, 0.5}});
    setting.model.set_default_efficiency(OpKind::Lamb, 0.25);
    setting.spreads.points[static_cast<std::size_t>(OpKind::MlpForward)] = {0.01, 0.125};
    setting.spreads.gemm = 0.02;
    setting.num_left_out = ranks;
    if (ranks > 1) {
      setting.links = {{LinkOperation::Message, {1e-5, 2e9}, 0.1},
                       {LinkOperation::AllReduce, {3e-5, 5e9}, 0.2}};
    }
    machine.settings.push_back(setting);
  }
  return machine;
}

class MachineFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text, const std::string& name = "file.toml") {
    const std::string path = directory_ / name;
    io::write_file(path, text);
    return path;
  }
  /// What reading it is refused with.
  std::string refusal(const std::string& text) {
    return test::user_error_of([&] { read_cluster(write(text)); });
  }
  /// The same of a cluster's file in which one line stands for another.
  std::string refusal_with(const std::string& line, const std::string& instead) {
    std::string text = kCluster;
    const std::size_t at = text.find(line);
    EXPECT_NE(at, std::string::npos) << line;
    return refusal(text.replace(at, line.size(), instead));
  }

  static constexpr const char* kCluster = R"([cluster]
name = "two nodes"
provenance = "datasheet"
nodes = 2
devices-per-node = 8
memory-bytes = 80e9
price-per-device-hour = 2.5

[device]
kind = "cuda"
peak-flops = 250e12
peak-bytes-per-second = 1.8e12
launch-seconds = 4e-6

[device.efficiency]
mlp_forward = [[32768, 1024, 4096, 0.9]]
lamb = 0.6

[within-node]
latency-seconds = 5e-6
bytes-per-second = 227e9

[between-nodes]
latency-seconds = 1e-5
bytes-per-second = 22.5e9
)";

  test::TemporaryDirectory directory_;
};

TEST_F(MachineFile, GivesBackWhatWasWritten) {
  const Machine machine = some_machine();
  const std::string path = directory_ / "machine.toml";
  write_machine(machine, path);
  const Machine read = read_machine(path);
  EXPECT_EQ(print_machine(read), print_machine(machine));
  EXPECT_EQ(read.name, machine.name);
  EXPECT_EQ(read.date, machine.date);
  EXPECT_EQ(read.overhead_bytes, machine.overhead_bytes);
  ASSERT_EQ(read.settings.size(), 2);
  const Setting& setting = read.settings[1];
  EXPECT_EQ(setting.ranks, 4);
  EXPECT_EQ(setting.threads, 1);
  EXPECT_EQ(setting.num_left_out, 4);
  EXPECT_EQ(setting.spreads.gemm, 0.02);
  EXPECT_EQ(setting.spreads.points[static_cast<std::size_t>(OpKind::MlpForward)][1], 0.125);
  EXPECT_EQ(setting.model.default_efficiency(OpKind::Lamb), 0.25);
  ASSERT_EQ(setting.links.size(), 2);
  EXPECT_EQ(setting.links[1].operation, LinkOperation::AllReduce);
  EXPECT_EQ(setting.links[1].link.latency_seconds, 3e-5);
  EXPECT_EQ(setting.links[1].fit_error, 0.2);
  const plan::Op op = plan::make_op(OpKind::MlpForward, 64, 128, 512, 4);
  EXPECT_DOUBLE_EQ(setting.model.seconds(op).total(), machine.settings[1].model.seconds(op).total());
}

TEST_F(MachineFile, GivesANodeForSomeRanksAndThreads) {
  const Machine machine = some_machine();
  const plan::Cluster whole = cluster_of(machine);
  EXPECT_EQ(whole.devices_per_node, 1);
  EXPECT_EQ(whole.threads, 4);
  EXPECT_EQ(whole.device.peak_flops, 2e11);
  EXPECT_EQ(whole.provenance, plan::Provenance::Measured);
  const plan::Cluster ranks = cluster_of(machine, {.ranks = 4, .threads = 1});
  EXPECT_EQ(ranks.devices_per_node, 4);
  EXPECT_EQ(ranks.device.peak_flops, 0.5e11);
  EXPECT_EQ(ranks.within_node.bytes_per_second, 5e9) << "collectives decide";
  EXPECT_EQ(ranks.memory_bytes, 2e10);
  // Three ranks are nearer to four than to one.
  const plan::Cluster between = cluster_of(machine, {.ranks = 3, .threads = 1});
  EXPECT_EQ(between.devices_per_node, 3);
  EXPECT_EQ(between.device.peak_flops, 0.5e11);
}

TEST_F(MachineFile, ReadsAClusterWithADeviceOfItsOwn) {
  const plan::Cluster cluster = read_cluster(write(kCluster));
  EXPECT_EQ(cluster.name, "two nodes");
  EXPECT_EQ(cluster.provenance, plan::Provenance::Datasheet);
  EXPECT_EQ(cluster.num_devices(), 16);
  EXPECT_EQ(cluster.kind, tensor::Device::Cuda);
  EXPECT_EQ(cluster.device.peak_flops, 250e12);
  EXPECT_EQ(cluster.device.points(OpKind::MlpForward).size(), 1);
  EXPECT_EQ(cluster.device.default_efficiency(OpKind::Lamb), 0.6);
  EXPECT_EQ(cluster.within_node.bytes_per_second, 227e9);
  EXPECT_EQ(cluster.between_nodes.latency_seconds, 1e-5);
  EXPECT_EQ(cluster.price_per_device_hour, 2.5);
}

TEST_F(MachineFile, ReadsAClusterOfAMachineThatLiesBesideIt) {
  write(print_machine(some_machine()), "machine.toml");
  const std::string path = write(R"([cluster]
name = "ours"
provenance = "measured"
machine = "machine.toml"
nodes = 3
devices-per-node = 4
[between-nodes]
latency-seconds = 5e-5
bytes-per-second = 1.1e9
)");
  const plan::Cluster cluster = read_cluster(path, {.ranks = 0, .threads = 1});
  EXPECT_EQ(cluster.num_devices(), 12);
  EXPECT_EQ(cluster.device.peak_flops, 0.5e11);
  EXPECT_EQ(cluster.within_node.bytes_per_second, 5e9);
  EXPECT_EQ(cluster.memory_bytes, 2e10);
  EXPECT_EQ(cluster.overhead_bytes, 12e6);
}

TEST_F(MachineFile, NamesTheNearestKnownKey) {
  EXPECT_THAT(refusal_with("peak-flops =", "peek-flops ="),
              HasSubstr("file.toml:11: unknown key 'peek-flops' in "
                        "[device]; did you mean 'peak-flops'?"));
  EXPECT_THAT(refusal_with("[within-node]", "[within-nodes]"),
              HasSubstr("unknown key 'within-nodes' in a cluster's file; did you mean 'within-node'?"));
  EXPECT_THAT(
      refusal_with("mlp_forward", "mlp_forwards"),
      HasSubstr("file.toml:16: unknown kind of operation 'mlp_forwards'; did you mean 'mlp_forward'?"));
}

TEST_F(MachineFile, RefusesAbsurdNumbersByLineAndKey) {
  EXPECT_THAT(refusal_with("227e9", "1"), HasSubstr("file.toml:21: bytes-per-second must lie between"));
  EXPECT_THAT(refusal_with("latency-seconds = 5e-6", "latency-seconds = -1e-6"),
              HasSubstr("file.toml:20: latency-seconds must lie between 0 and 1: -1e-06"));
  EXPECT_THAT(refusal_with("250e12", "nan"), HasSubstr("file.toml:11: peak-flops must lie between"));
  EXPECT_THAT(refusal_with("1.8e12", "inf"),
              HasSubstr("file.toml:12: peak-bytes-per-second must lie between"));
  EXPECT_THAT(refusal_with("4096, 0.9]", "4096, 20.5]"),
              HasSubstr("file.toml:16: the efficiency of mlp_forward must lie between 1e-06 and 20: 20.5"));
  EXPECT_THAT(refusal_with("4096, 0.9]", "4096]"), HasSubstr("file.toml:16: a point of mlp_forward must be"));
  EXPECT_THAT(refusal_with("nodes = 2", "nodes = 2.5"),
              HasSubstr("file.toml:4: nodes must be a whole number: 2.5"));
  EXPECT_THAT(refusal_with("nodes = 2", "nodes = 0"), HasSubstr("file.toml:4: nodes must lie between"));
  EXPECT_THAT(refusal_with("80e9", "\"80 GB\""), HasSubstr("file.toml:6: memory-bytes must be a number"));
  EXPECT_THAT(refusal_with("\"cuda\"", "\"tpu\""),
              HasSubstr("file.toml:10: kind must be one of cpu, cuda: 'tpu'"));
}

TEST_F(MachineFile, RefusesWhatIsMissing) {
  EXPECT_THAT(refusal_with("launch-seconds = 4e-6\n", ""),
              HasSubstr("file.toml:9: [device] lacks the key 'launch-seconds'"));
  EXPECT_THAT(refusal_with("[between-nodes]\nlatency-seconds = 1e-5\nbytes-per-second = 22.5e9\n", ""),
              HasSubstr("lacks the table [between-nodes]"));
  EXPECT_THAT(refusal_with("memory-bytes = 80e9", "machine = \"machine.toml\""),
              HasSubstr("either a table [device] or the key 'machine'"));
  EXPECT_THAT(refusal(""), HasSubstr("has neither a table [cluster] nor a table [machine]"));
  EXPECT_THAT(refusal("[machine]\nname = \"m\"\nmemory-bytes = 1e9\n"), HasSubstr("tables [[setting]]: 0"));
}

TEST_F(MachineFile, ReadsEveryRecipe) {
  int num_recipes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PLENUM_SOURCE_DIR "/recipes/clusters")) {
    const plan::Cluster cluster = read_cluster(entry.path().string());
    EXPECT_GT(cluster.num_devices(), 1) << entry.path();
    const plan::Op op = plan::make_op(OpKind::ProductForward, 4096, 1024, 1024, 2);
    EXPECT_GT(cluster.device.seconds(op).total(), 0) << entry.path();
    ++num_recipes;
  }
  EXPECT_GE(num_recipes, 6);
}

TEST_F(MachineFile, GivesTheMeasuredTimesOfAnH200) {
  // bench/results/h200-202611.md, "Where the time of a step goes": ms of so many launches.
  const plan::DeviceModel model = read_cluster(PLENUM_SOURCE_DIR "/recipes/clusters/h200.toml").device;
  const auto expect_ms = [&](OpKind kind, double rows, double in, double out, double ms, double launches) {
    const double seconds = model.seconds(plan::make_op(kind, rows, in, out, 2)).total();
    EXPECT_NEAR(seconds * launches * 1e3, ms, 0.02 * ms) << plan::op_kind_name(kind);
  };
  constexpr double kMlps = 23 + 4994.0 / 32768;  // the last layer's of rows that heads read alone
  expect_ms(OpKind::ProductForward, 32768, 1024, 3072, 7.000, 24);
  expect_ms(OpKind::ProductWeightGradient, 32768, 1024, 4096, 9.179, 23);
  expect_ms(OpKind::MlpForward, 32768, 1024, 4096, 10.068, kMlps);
  expect_ms(OpKind::MlpInputGradient, 32768, 1024, 4096, 9.688, kMlps);
  expect_ms(OpKind::AttentionForward, 32768, 382, 1024, 3.750, 24);
  expect_ms(OpKind::AttentionBackward, 32768, 382, 1024, 9.814, 24);
  expect_ms(OpKind::VocabularyLossForward, 4994, 1024, 30522, 0.522 + 0.137, 1);
  expect_ms(OpKind::VocabularyLossBackward, 4994, 1024, 30522, 0.461 + 0.472 + 0.137, 1);
}

}  // namespace
}  // namespace plenum::calibrate
