#pragma once

#include <csignal>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "plenum/comm/mpi/mpi_world.h"

#include "tests/cli/training_program.h"

namespace plenum::cli {

/// Runs of several processes, started by mpirun.
class ProcessesProgram : public TrainingProgram {
 protected:
  static constexpr int kThreads = 4;  ///< of all processes

  void SetUp() override {
    if (const std::optional<std::string> obstacle = comm::mpi::obstacle()) GTEST_SKIP() << *obstacle;
    if (test::run_command("mpirun --version").exit_code != 0) GTEST_SKIP() << "there is no mpirun";
  }

  /// The shell's command; each process writes its number into the file pid-RANK first.
  static std::string mpirun(std::size_t num_processes, const std::string& arguments,
                            const std::string& program = PLENUM_BINARY) {
    // Open MPI counts cores and asks before it runs as root, each version in its own words. Containers may
    // forbid its processes to read each other's memory.
    return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
           "OMPI_MCA_btl_vader_single_copy_mechanism=none "
           "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe mpirun -np " +
           std::to_string(num_processes) +
           " sh -c 'echo $$ > pid-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; exec \"$0\" \"$@\"' '" + program +
           "' " + arguments;
  }

  test::ProgramResult train(std::size_t num_processes, const std::string& arguments) const {
    return test::run_command(mpirun(num_processes, arguments), directory_.path());
  }

  /// Starts a run in the background, with its words in the files out and err.
  pid_t start_processes(std::size_t num_processes, const std::string& arguments) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const std::string command =
        "cd '" + directory_.path() + "' && " + mpirun(num_processes, arguments) + " >out 2>err";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }

  void signal_rank(std::size_t rank, int signal) const {
    ::kill(static_cast<pid_t>(std::stol(read("pid-" + std::to_string(rank)))), signal);
  }

  void expect_same_checkpoints(const std::string& run, const std::string& expected,
                               const std::string& step) const {
    for (const char* file : {"model.safetensors", "optimizer.safetensors", "config.json"}) {
      const std::string name = "/checkpoints/step-" + step + "/" + file;
      EXPECT_TRUE(read(run + name) == read(expected + name)) << file;
      EXPECT_FALSE(read(run + name).empty()) << run + name;
    }
  }
};

}  // namespace plenum::cli
