// Processes that train together over NCCL. They may share a GPU: told apart by NCCL_HOSTID, NCCL takes them
// for processes of different machines.

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plenum/comm/nccl/nccl_world.h"
#include "plenum/io/directory.h"

#include "tests/cli/training_program.h"
#include "tests/support/bfloat16_band.h"
#include "tests/support/on_gpu.h"

namespace plenum::cli {
namespace {

struct MeshOfProcesses {
  int count = 1;
  std::string options = {};
};

const std::vector<MeshOfProcesses>& meshes_of_processes() {
  static const std::vector<MeshOfProcesses> all = {
      {2, " --tp 2"},
      {2, " --tp 2 --optimizer lamb"},
      {4, " --tp 2 --shard optimizer"},
      {4, " --tp 2 --pp 2"},
      {2, " --shard optimizer"},
      {2, " --shard gradients --micro-batch-tokens 64"},  // several on every rank
      {3, " --shard parameters"},
      {2, " --shard parameters --micro-batch-tokens 64 --optimizer lamb"},
      {4, " --tp 2 --shard parameters"},
  };
  return all;
}

class ProcessesOnGpu : public test::OnGpu<TrainingProgram> {
 protected:
  void SetUp() override {
    test::OnGpu<TrainingProgram>::SetUp();
    if (const std::optional<std::string> obstacle = comm::nccl::obstacle()) GTEST_SKIP() << *obstacle;
  }

  static std::string arguments(const std::string& run, int steps, const std::string& more) {
    return "train --data data --run " + run +
           " --model bert-tiny --layers 4 --width 128 --heads 2 --mlp-width 256 --max-positions 32 "
           "--global-batch 16 --learning-rate 1e-3 --seed 5 --device cuda --quiet --threads 4 "
           "--eval-every 10 --checkpoint-every 100000 --bucket-bytes 1 --steps " +
           std::to_string(steps) + more;
  }

  /// As torchrun would start them. Gives the exit code and the errors of the first that fails.
  test::ProgramResult train(const std::string& run, int steps, const MeshOfProcesses& mesh) const {
    std::string command;
    const std::string count = std::to_string(mesh.count);
    for (int rank = 0; rank < mesh.count; ++rank) {
      const std::string number = std::to_string(rank);
      const std::string variables = mesh.count == 1 ? ""
                                                    : "NCCL_HOSTID=rank-" + number + " RANK=" + number +
                                                          " WORLD_SIZE=" + count + " LOCAL_RANK=" + number +
                                                          " LOCAL_WORLD_SIZE=" + count + " ";
      command += variables + "'" PLENUM_BINARY "' " + arguments(run, steps, mesh.options) + " & p" + number +
                 "=$!; ";
    }
    command += "code=0; ";
    for (int rank = 0; rank < mesh.count; ++rank)
      command += "wait $p" + std::to_string(rank) + " || code=$?; ";
    return test::run_command("{ " + command + "(exit $code); }", directory_.path());
  }

  std::vector<double> losses_of(const std::string& run) const {
    std::vector<double> losses;
    std::istringstream lines(read(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json step = nlohmann::json::parse(line);
      if (step.contains("lr")) losses.push_back(step.at("loss"));
    }
    return losses;
  }

  void expect_same_tensors(const std::string& run, const std::string& expected,
                           const std::string& step) const {
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      const std::string name = "/checkpoints/step-" + step + "/" + file;
      EXPECT_FALSE(read(expected + name).empty()) << expected + name;
      EXPECT_TRUE(read(run + name) == read(expected + name)) << file;
    }
  }
};

TEST_F(ProcessesOnGpu, HaveTheLossesOfOneRankAndTheSameBytesTwice) {
  for (std::size_t i = 0; i < meshes_of_processes().size(); ++i) {
    const MeshOfProcesses& mesh = meshes_of_processes()[i];
    SCOPED_TRACE(mesh.options);
    const std::string name = std::to_string(i);
    const bool is_lamb = mesh.options.find("lamb") != std::string::npos;
    const std::string alone = is_lamb ? "alone_with_lamb" : "alone";
    std::vector<std::pair<std::string, MeshOfProcesses>> runs = {{"one" + name, mesh}, {"two" + name, mesh}};
    if (!io::path_exists(directory_ / alone))
      runs.emplace_back(alone, MeshOfProcesses{1, is_lamb ? " --optimizer lamb" : ""});
    for (const auto& [run, started] : runs) {
      const test::ProgramResult result = train(run, 20, started);
      ASSERT_EQ(result.exit_code, 0) << result.errors;
    }
    const std::vector<double> expected = losses_of(alone);
    const std::vector<double> actual = losses_of("one" + name);
    ASSERT_EQ(actual.size(), 20U);
    ASSERT_EQ(expected.size(), 20U);
    for (std::size_t step = 0; step < expected.size(); ++step)
      EXPECT_NEAR(actual[step], expected[step], test::kBFloat16Loss * expected[step]) << "step " << step + 1;
    expect_same_tensors("two" + name, "one" + name, "00000020");
  }
}

TEST_F(ProcessesOnGpu, ResumeEachOthersRuns) {
  int steps = 0;
  for (const MeshOfProcesses& mesh : meshes_of_processes()) {
    if (mesh.options.find("lamb") != std::string::npos) continue;  // the run keeps its optimizer
    SCOPED_TRACE(mesh.options);
    for (const MeshOfProcesses& next : {mesh, MeshOfProcesses{}}) {
      steps += 5;
      for (const auto& [run, started] :
           {std::pair{"alone", MeshOfProcesses{}}, std::pair{"changing", next}}) {
        const test::ProgramResult result = train(run, steps, started);
        ASSERT_EQ(result.exit_code, 0) << result.errors;
      }
    }
  }
  const std::vector<double> expected = losses_of("alone");
  const std::vector<double> actual = losses_of("changing");
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(steps));
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(actual[step], expected[step], test::kBFloat16Loss * expected[step]) << "step " << step + 1;
}

}  // namespace
}  // namespace plenum::cli
