// Processes that train together over NCCL. They may share a GPU: told apart by NCCL_HOSTID, NCCL takes them
// for processes of different machines.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plenum/comm/nccl/nccl_world.h"

#include "tests/cli/training_program.h"
#include "tests/support/bfloat16_band.h"
#include "tests/support/on_gpu.h"

namespace plenum::cli {
namespace {

/// Every process waits for the GPU's turns of all others at each sum, some milliseconds each, so these train
/// a small model for few steps. With fewer than four layers nothing is gathered again for the backward.
constexpr std::size_t kNumSteps = 8;
/// After which checkpoints are written, beside the last: each with its directory's name.
constexpr const char* kFirstCheckpoint = "step-00000003";
constexpr const char* kSecondCheckpoint = "step-00000006";
constexpr const char* kLastCheckpoint = "step-00000008";

struct MeshOfProcesses {
  std::string name;
  int count = 1;
  std::string options = {};

  friend std::ostream& operator<<(std::ostream& out, const MeshOfProcesses& mesh) {
    return out << mesh.count << " processes" << mesh.options;
  }
};

/// A run that is resumed keeps what is not given.
const MeshOfProcesses kOneRank{"OneRank", 1, " --ranks 1 --tp 1 --pp 1 --shard none"};

/// An optimizer of its own is the last of the options.
std::string optimizer_of(const MeshOfProcesses& mesh) {
  const std::size_t begin = mesh.options.find(" --optimizer ");
  return begin == std::string::npos ? "" : mesh.options.substr(begin);
}

std::string name_of(const testing::TestParamInfo<MeshOfProcesses>& info) {
  return info.param.name;
}

class ProcessesOnGpu : public test::OnGpu<TrainingProgram>,
                       public testing::WithParamInterface<MeshOfProcesses> {
 protected:
  void SetUp() override {
    test::OnGpu<TrainingProgram>::SetUp();
    if (const std::optional<std::string> obstacle = comm::nccl::obstacle()) GTEST_SKIP() << *obstacle;
  }

  /// A hang in a step ends as a failure that names the rank and the action. What the program does not see, as
  /// a hang while processes connect, ends by the limit of `timeout`: with exit code 124 if the program still
  /// stops when told to, with 137 if not.
  static std::string command(const std::string& run, const std::string& more) {
    return "timeout -k 5 90 '" PLENUM_BINARY "' train --data data --run " + run +
           " --model bert-tiny --layers 4 --width 128 --heads 2 --mlp-width 256 --max-positions 32 "
           "--global-batch 16 --learning-rate 1e-3 --seed 5 --device cuda --quiet --threads 4 "
           "--eval-every 8 --checkpoint-every 3 --keep 4 --bucket-bytes 1 --hang-limit 40s --steps " +
           std::to_string(kNumSteps) + more;
  }

  /// As torchrun would start them. Fails with the errors of all if one does.
  void train(const std::string& run, const MeshOfProcesses& mesh) const {
    SCOPED_TRACE(run + mesh.options);
    std::string started;
    std::string awaited;
    const std::string count = std::to_string(mesh.count);
    for (int rank = 0; rank < mesh.count; ++rank) {
      const std::string number = std::to_string(rank);
      if (mesh.count > 1) {
        started += "NCCL_HOSTID=rank-" + number + " RANK=" + number + " WORLD_SIZE=" + count +
                   " LOCAL_RANK=" + number + " LOCAL_WORLD_SIZE=" + count + " ";
      }
      started += command(run, mesh.options) + " & p" + number + "=$!; ";
      awaited += "wait $p" + number + " || { code=$?; echo rank " + number + ": exit code $code >&2; }; ";
    }
    const test::ProgramResult result =
        test::run_command("{ code=0; " + started + awaited + "(exit $code); }", directory_.path());
    ASSERT_EQ(result.exit_code, 0) << result.errors;
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

  /// Of one rank with the optimizer of the mesh: trained once for all tests of the program.
  const std::vector<double>& losses_of_one_rank() const {
    static std::map<std::string, std::vector<double>> of_optimizers;
    const std::string optimizer = optimizer_of(GetParam());
    std::vector<double>& losses = of_optimizers[optimizer];
    if (losses.empty()) {
      train("alone", {kOneRank.name, 1, kOneRank.options + optimizer});
      losses = losses_of("alone");
    }
    return losses;
  }

  void expect_losses(const std::string& run, const std::vector<double>& expected) const {
    const std::vector<double> actual = losses_of(run);
    ASSERT_EQ(expected.size(), kNumSteps);
    ASSERT_EQ(actual.size(), kNumSteps);
    double largest = 0;
    for (std::size_t step = 0; step < kNumSteps; ++step) {
      const double difference = std::abs(actual[step] - expected[step]) / expected[step];
      EXPECT_LE(difference, test::kBFloat16Loss) << run << ", step " << step + 1;
      largest = std::max(largest, difference);
    }
    RecordProperty(run, std::to_string(largest));
  }

  void expect_same_tensors(const std::string& run, const std::string& expected) const {
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      const std::string name = std::string("/checkpoints/") + kLastCheckpoint + "/" + file;
      EXPECT_FALSE(read(expected + name).empty()) << expected + name;
      EXPECT_TRUE(read(run + name) == read(expected + name)) << file;
    }
  }

  /// Copies a run as it was when it had written the last checkpoint that is named.
  void copy_up_to(const std::string& checkpoint, const std::string& run, const std::string& copy) const {
    using std::filesystem::copy_options;
    std::filesystem::copy(directory_ / run, directory_ / copy,
                          copy_options::recursive | copy_options::copy_symlinks);
    for (const std::string later : {kFirstCheckpoint, kSecondCheckpoint, kLastCheckpoint}) {
      if (later > checkpoint) std::filesystem::remove_all(directory_ / (copy + "/checkpoints/" + later));
    }
  }
};

TEST_P(ProcessesOnGpu, HaveTheLossesOfOneRankAndTheSameBytesTwice) {
  ASSERT_NO_FATAL_FAILURE(train("one", GetParam()));
  expect_losses("one", losses_of_one_rank());
  ASSERT_NO_FATAL_FAILURE(train("two", GetParam()));
  expect_same_tensors("two", "one");
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, ProcessesOnGpu,
    testing::Values(MeshOfProcesses{"TwoSlices", 2, " --tp 2"},
                    MeshOfProcesses{"TwoSlicesWithLamb", 2, " --tp 2 --optimizer lamb"},
                    MeshOfProcesses{"TwoShardsOfTheOptimizer", 2, " --shard optimizer"},
                    // Several micro-batches on every rank.
                    MeshOfProcesses{"TwoShardsOfGradients", 2, " --shard gradients --micro-batches 2"},
                    MeshOfProcesses{"TwoShardsOfParametersWithLamb", 2,
                                    " --shard parameters --micro-batches 2 --optimizer lamb"},
                    MeshOfProcesses{"ThreeShardsOfParameters", 3, " --shard parameters"},
                    MeshOfProcesses{"TwoSlicesOfTwoShardsOfTheOptimizer", 4, " --tp 2 --shard optimizer"},
                    MeshOfProcesses{"TwoSlicesOfTwoShardsOfParameters", 4, " --tp 2 --shard parameters"},
                    MeshOfProcesses{"TwoSlicesOfTwoStages", 4, " --tp 2 --pp 2 --micro-batches 2"}),
    name_of);

class ResumeOnGpu : public ProcessesOnGpu {};

TEST_P(ResumeOnGpu, ProcessesARunOfOneRankAndOneRankThatOfProcesses) {
  ASSERT_NO_FATAL_FAILURE(train("of_one_rank", kOneRank));
  copy_up_to(kFirstCheckpoint, "of_one_rank", "of_processes");
  ASSERT_NO_FATAL_FAILURE(train("of_processes", GetParam()));
  expect_losses("of_processes", losses_of("of_one_rank"));
  copy_up_to(kSecondCheckpoint, "of_processes", "of_one_rank_again");
  ASSERT_NO_FATAL_FAILURE(train("of_one_rank_again", kOneRank));
  expect_losses("of_one_rank_again", losses_of("of_one_rank"));
}

// Slices and shards, several stages, and shards that are not alike.
INSTANTIATE_TEST_SUITE_P(
    Meshes, ResumeOnGpu,
    testing::Values(MeshOfProcesses{"ThreeShardsOfGradients", 3, " --shard gradients"},
                    MeshOfProcesses{"TwoSlicesOfTwoShardsOfParameters", 4, " --tp 2 --shard parameters"},
                    MeshOfProcesses{"TwoSlicesOfTwoStages", 4, " --tp 2 --pp 2 --micro-batches 2"}),
    name_of);

}  // namespace
}  // namespace plenum::cli
