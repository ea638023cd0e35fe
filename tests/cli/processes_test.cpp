#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "plenum/cli/exit_codes.h"
#include "plenum/comm/mpi/mpi_world.h"

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Runs of several processes, started by mpirun.
class ProcessesProgram : public TrainingProgram {
 protected:
  static constexpr int kThreads = 4;  ///< of all processes

  void SetUp() override {
    if (const std::optional<std::string> obstacle = comm::mpi::obstacle()) GTEST_SKIP() << *obstacle;
    if (test::run_command("mpirun --version").exit_code != 0) GTEST_SKIP() << "there is no mpirun";
  }

  /// The shell's command; each process writes its number into the file pid-RANK first.
  static std::string mpirun(std::size_t num_processes, const std::string& arguments) {
    // Open MPI counts cores and asks before it runs as root, each version in its own words. Containers may
    // forbid its processes to read each other's memory.
    return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
           "OMPI_MCA_btl_vader_single_copy_mechanism=none "
           "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe mpirun -np " +
           std::to_string(num_processes) +
           " sh -c 'echo $$ > pid-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; exec \"$0\" \"$@\"' '" PLENUM_BINARY
           "' " +
           arguments;
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

  /// Starts a run that would take for ever, sends one of its processes a signal once it trains, and gives
  /// how it ends.
  int train_and_signal(std::size_t num_processes, std::size_t rank, int signal,
                       const std::string& run) const {
    const pid_t child = start_processes(num_processes, train_arguments(run, 1'000'000, kThreads));
    EXPECT_TRUE(wait_for(run + "/metrics.jsonl", child, 2'000)) << read("err");
    signal_rank(rank, signal);
    return exit_code_of(child);
  }

  /// A run of which a random process is told to stop again and again ends with the bytes of one that was left
  /// in peace.
  void expect_undisturbed_by_stops(int num_stops) const {
    constexpr std::size_t kCount = 3;
    constexpr int kStepsBetweenStops = 20;
    const int num_steps = kStepsBetweenStops * (num_stops + 1);
    const std::string options = " --eval-every 100000 --checkpoint-every 100000";
    const auto arguments = [&](const std::string& run) {
      return train_arguments(run, num_steps, kThreads) + options;
    };
    ASSERT_EQ(train(kCount, arguments("peace")).exit_code, 0) << read("err");
    std::mt19937 random(5);
    int num_stopped = 0;
    for (int i = 0; i < num_stops; ++i) {
      const pid_t child = start_processes(kCount, arguments("run"));
      std::error_code ignored;
      const std::uintmax_t size = std::filesystem::file_size(directory_ / "run/metrics.jsonl", ignored);
      wait_for("run/metrics.jsonl", child, ignored ? 0 : size);
      signal_rank(random() % kCount, SIGTERM);
      const int exit_code = exit_code_of(child);
      ASSERT_THAT(exit_code, testing::AnyOf(0, kStoppedCode)) << read("err");
      num_stopped += exit_code == kStoppedCode ? 1 : 0;
    }
    EXPECT_GT(num_stopped, num_stops / 2);
    ASSERT_EQ(train(kCount, arguments("run")).exit_code, 0);
    const std::string last = std::to_string(num_steps);
    expect_same_checkpoints("run", "peace", std::string(8 - last.size(), '0') + last);
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

TEST_F(ProcessesProgram, TrainToTheBytesOfAsManyRanksInOneProcess) {
  for (const std::size_t count : {2U, 3U}) {
    const std::string number = std::to_string(count);
    const test::ProgramResult threads = plenum(
        train_arguments("threads" + number, 8, static_cast<int>(count)) + " --quiet --ranks " + number);
    ASSERT_EQ(threads.exit_code, 0) << threads.errors;
    const test::ProgramResult processes = train(count, train_arguments("processes" + number, 8, kThreads));
    ASSERT_EQ(processes.exit_code, 0) << processes.errors;
    EXPECT_THAT(processes.output, HasSubstr("trained 8 of 8 steps"));
    expect_same_checkpoints("processes" + number, "threads" + number, "00000008");
    EXPECT_THAT(read("processes" + number + "/logs/rank-1.log"), HasSubstr("step-00000008"));
    EXPECT_FALSE(std::filesystem::exists(directory_ / ("processes" + number + "/control.json")));
  }
}

TEST_F(ProcessesProgram, StopTogetherWhenOneIsToldToAndGoOn) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    const std::string run = "run" + std::to_string(signal);
    EXPECT_EQ(train_and_signal(2, 1, signal, run), kStoppedCode) << read("err");
    EXPECT_THAT(read("out"), AllOf(HasSubstr("stopped after"), HasSubstr("resumes")));
    const test::ProgramResult resumed =
        train(2, train_arguments(run, 1'000'000, kThreads) + " --stop-after 1s");
    EXPECT_EQ(resumed.exit_code, kStoppedCode) << resumed.errors;
    EXPECT_THAT(resumed.errors, HasSubstr("goes on from " + run));
  }
}

TEST_F(ProcessesProgram, GoOnToTheBytesOfAnUndisturbedRunAfterEveryStop) {
  expect_undisturbed_by_stops(3);
}

/// For tools/soak: two hundred stops take minutes.
TEST_F(ProcessesProgram, DISABLED_SoakGoOnToTheBytesOfAnUndisturbedRunAfterTwoHundredStops) {
  expect_undisturbed_by_stops(200);
}

/// For tools/soak: a process that gives no sign of life is given 15 seconds.
TEST_F(ProcessesProgram, DISABLED_SoakNameOneThatIsStoppedBySigstop) {
  const pid_t child = start_processes(3, train_arguments("run", 1'000'000, kThreads));
  ASSERT_TRUE(wait_for("run/metrics.jsonl", child, 2'000)) << read("err");
  signal_rank(1, SIGSTOP);
  while (!has_ended(child) && read("err").find("plenum: error: ") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  signal_rank(1, SIGKILL);
  EXPECT_NE(exit_code_of(child), 0);
  EXPECT_THAT(read("err"), AllOf(HasSubstr("rank 1 on "), HasSubstr("no heartbeat for")));
}

TEST_F(ProcessesProgram, NameOneThatIsKilled) {
  const int exit_code = train_and_signal(3, 2, SIGKILL, "run");
  EXPECT_NE(exit_code, 0);
  EXPECT_NE(exit_code, kStoppedCode);
  EXPECT_THAT(read("err"), AllOf(HasSubstr("plenum: error: rank 2 on "),
                                 HasSubstr("the process ended or was killed"), HasSubstr("step ")));
}

TEST_F(ProcessesProgram, RefuseOneThatWasGivenOtherOptions) {
  directory_.write("other.sh",
                   "[ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ] && set -- \"$@\" --mask-rate 0.2\n"
                   "exec '" PLENUM_BINARY "' \"$@\"\n");
  const std::string command = mpirun(2, "");
  const test::ProgramResult refused = test::run_command(
      command.substr(0, command.find(" sh -c ")) + " sh other.sh " + train_arguments("run", 4, kThreads),
      directory_.path());
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.errors,
              AllOf(HasSubstr("rank 1 on "), HasSubstr("mask-rate in [data] is '0.2' and not '0.15'")));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run/checkpoints"));
}

}  // namespace
}  // namespace plenum::cli
