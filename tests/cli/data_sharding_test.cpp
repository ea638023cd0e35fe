#include <csignal>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "plenum/cli/exit_codes.h"
#include "plenum/comm/mpi/mpi_world.h"

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Processes started by mpirun, each of which has its shards in a directory of its own: node-RANK.
class DataShardingProgram : public TrainingProgram {
 protected:
  void SetUp() override {
    if (const std::optional<std::string> obstacle = comm::mpi::obstacle()) GTEST_SKIP() << *obstacle;
    if (test::run_command("mpirun --version").exit_code != 0) GTEST_SKIP() << "there is no mpirun";
    directory_.write("node.sh",
                     "rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\n"
                     "echo $$ > pid-$rank\n"
                     "exec '" PLENUM_BINARY "' \"$@\" --data node-$rank --data-sharding local\n");
  }

  void deal_out(std::size_t num_shards) const {
    const test::ProgramResult prepared = plenum(
        "prepare in --output shards --train-vocab 150 --max-length 32 --holdout 20% --quiet --overwrite "
        "--shards " +
        std::to_string(num_shards));
    ASSERT_EQ(prepared.exit_code, 0) << prepared.errors;
    for (std::size_t shard = 0; shard < num_shards; ++shard) {
      const std::string node = directory_ / ("node-" + std::to_string(shard));
      std::filesystem::remove_all(node);
      std::filesystem::create_directories(node);
      std::filesystem::rename(directory_ / ("shards/shard-" + std::to_string(shard)),
                              node + "/shard-" + std::to_string(shard));
    }
  }

  static std::string mpirun(std::size_t num_processes, const std::string& command) {
    return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
           "OMPI_MCA_btl_vader_single_copy_mechanism=none "
           "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe mpirun -np " +
           std::to_string(num_processes) + " " + command;
  }
  static std::string local(std::size_t num_processes, const std::string& run, int steps) {
    return mpirun(num_processes, "sh node.sh " + train_arguments(run, steps, 4));
  }
  static std::string shared(std::size_t num_processes, const std::string& run, int steps) {
    return mpirun(num_processes, "'" PLENUM_BINARY "' " + train_arguments(run, steps, 4));
  }
  void expect_trained(const std::string& command) const {
    const test::ProgramResult result = test::run_command(command, directory_.path());
    EXPECT_EQ(result.exit_code, 0) << result.errors;
  }
  void expect_same_model(const std::string& run, const std::string& expected, const std::string& step) const {
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      const std::string name = "/checkpoints/step-" + step + "/" + file;
      EXPECT_TRUE(read(run + name) == read(expected + name)) << run + name;
      EXPECT_FALSE(read(run + name).empty()) << run + name;
    }
  }
};

TEST_F(DataShardingProgram, TrainsToTheBytesOfASharedDataset) {
  for (const std::size_t count : {2U, 3U}) {
    const std::string number = std::to_string(count);
    deal_out(count);
    expect_trained(shared(count, "shared" + number, 8));
    expect_trained(local(count, "local" + number, 8));
    expect_same_model("local" + number, "shared" + number, "00000008");
  }
}

TEST_F(DataShardingProgram, ResumesFromOneAndTheOther) {
  deal_out(2);
  for (const int steps : {4, 8, 12}) {
    expect_trained(shared(2, "shared", steps));
    expect_trained(steps == 8 ? shared(2, "mixed", steps) : local(2, "mixed", steps));
  }
  expect_same_model("mixed", "shared", "00000012");
}

TEST_F(DataShardingProgram, RefusesAMissingShardAndOneOfAnotherDataset) {
  deal_out(3);
  test::ProgramResult refused = test::run_command(local(2, "run", 4), directory_.path());
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.errors, HasSubstr("of the 3 shards of the dataset no process has 2;"));
  std::filesystem::remove_all(directory_ / "node-1");
  std::filesystem::rename(directory_ / "node-2", directory_ / "node-1");
  directory_.write("in/more.txt", "Another text makes another dataset.\n");
  const test::ProgramResult prepared = plenum(
      "prepare in --output node-0 --train-vocab 150 --max-length 32 --holdout 20% --quiet --overwrite "
      "--shards 3");
  ASSERT_EQ(prepared.exit_code, 0) << prepared.errors;
  refused = test::run_command(local(2, "run", 4), directory_.path());
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.errors, AllOf(HasSubstr("plenum: error: rank 1 on "), HasSubstr("the dataset is")));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run/checkpoints"));
}

TEST_F(DataShardingProgram, EndsWhereAProcessIsKilled) {
  deal_out(3);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string command =
        "cd '" + directory_.path() + "' && " + local(3, "run", 1'000'000) + " >out 2>err";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  EXPECT_TRUE(wait_for("run/metrics.jsonl", child, 2'000)) << read("err");
  ::kill(static_cast<pid_t>(std::stol(read("pid-2"))), SIGKILL);
  const int exit_code = exit_code_of(child);
  EXPECT_NE(exit_code, 0);
  EXPECT_NE(exit_code, kStoppedCode);
  EXPECT_THAT(read("err"), HasSubstr("plenum: error: rank 2 on "));
}

}  // namespace
}  // namespace plenum::cli
