#include "plenum/control/launch.h"

#include <map>

#include <gtest/gtest.h>

#include "tests/support/expect_user_error.h"

namespace plenum::control {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

Launch launch_of(const Variables& variables) {
  return read_launch([&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

Variables operator+(Variables one, const Variables& other) {
  one.insert(other.begin(), other.end());
  return one;
}

const Variables kTorchrun = {
    {"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables kStep = {{"SLURM_PROCID", "3"},         {"SLURM_NTASKS", "5"},
                         {"SLURM_STEP_ID", "0"},        {"SLURM_LOCALID", "1"},
                         {"SLURM_STEP_NUM_TASKS", "5"}, {"SLURM_NODEID", "1"},
                         {"SLURM_JOB_ID", "123"},       {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"}};

void expect_launch(const Launch& launch, Launcher launcher, std::uint32_t rank, std::uint32_t num_ranks) {
  EXPECT_EQ(launch.launcher, launcher);
  EXPECT_EQ(launch.rank.value, rank);
  EXPECT_EQ(launch.num_ranks, num_ranks);
}

TEST(ReadLaunch, IsAloneWithoutALauncher) {
  const Launch launch = launch_of({{"PATH", "/bin"}});
  expect_launch(launch, Launcher::None, 0, 1);
  EXPECT_TRUE(launch.is_alone());
  EXPECT_TRUE(launch.is_on_one_host());
  EXPECT_EQ(launch.local_rank, 0U);
}

TEST(ReadLaunch, ReadsTorchrun) {
  const Launch launch = launch_of(kTorchrun);
  expect_launch(launch, Launcher::Torchrun, 5, 8);
  EXPECT_EQ(launch.local_rank, 1U);
  EXPECT_EQ(launch.num_local_ranks, 4U);
  EXPECT_FALSE(launch.is_on_one_host());
}

TEST(ReadLaunch, ReadsOpenMpi) {
  const Launch launch = launch_of(kOpenMpi);
  expect_launch(launch, Launcher::OpenMpi, 2, 4);
  EXPECT_EQ(launch.local_rank, 0U);
  EXPECT_EQ(launch.num_local_ranks, 2U);
}

TEST(ReadLaunch, ReadsHydra) {
  const Launch launch =
      launch_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  expect_launch(launch, Launcher::Pmi, 1, 2);
  EXPECT_EQ(launch.local_rank, 1U);
  EXPECT_TRUE(launch.is_on_one_host());
}

TEST(ReadLaunch, ReadsAStepOfSlurm) {
  const Launch launch = launch_of(kStep);
  expect_launch(launch, Launcher::Slurm, 3, 5);
  EXPECT_EQ(launch.local_rank, 1U);
  EXPECT_EQ(launch.num_local_ranks, 2U);
}

TEST(ReadLaunch, TakesTheTasksOfAStepAndNotThoseOfTheJob) {
  Variables step = kStep;
  step["SLURM_NTASKS"] = "64";
  EXPECT_EQ(launch_of(step).num_ranks, 5U);
}

TEST(ReadLaunch, IsAloneInABatchScriptOrAnInteractiveShellOfSlurm) {
  const Variables batch = {{"SLURM_JOB_ID", "123"},
                           {"SLURM_PROCID", "0"},
                           {"SLURM_LOCALID", "0"},
                           {"SLURM_NODEID", "0"},
                           {"SLURM_NTASKS", "8"}};
  EXPECT_TRUE(launch_of(batch).is_alone());
  for (const char* step : {"4294967291", "4294967290"}) {
    const Variables named_step = batch + Variables{{"SLURM_STEP_ID", step}, {"SLURM_STEP_NUM_TASKS", "8"}};
    EXPECT_TRUE(launch_of(named_step).is_alone()) << step;
  }
}

TEST(ReadLaunch, ReadsItsOwnVariablesBeforeAllOthers) {
  const Variables own = {{"PLENUM_RANK", "1"},
                         {"PLENUM_NUM_RANKS", "2"},
                         {"PLENUM_LOCAL_RANK", "1"},
                         {"PLENUM_NUM_LOCAL_RANKS", "2"},
                         {"PLENUM_SECRET", "0123456789abcdef"}};
  const Launch launch = launch_of(own + kTorchrun + kOpenMpi + kStep);
  expect_launch(launch, Launcher::Plenum, 1, 2);
  EXPECT_EQ(launch.secret, "0123456789abcdef");
  EXPECT_TRUE(launch.is_on_one_host());
}

TEST(ReadLaunch, TakesTheInnerOfNestedLaunchers) {
  // mpirun starts its daemons by srun, one for each node.
  EXPECT_EQ(launch_of(kOpenMpi + kStep).launcher, Launcher::OpenMpi);
  // One torchrun for each task of srun.
  EXPECT_EQ(launch_of(kTorchrun + kStep).launcher, Launcher::Torchrun);
  const Variables one_of_mpi = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  EXPECT_EQ(launch_of(kTorchrun + one_of_mpi).launcher, Launcher::Torchrun);
  EXPECT_TRUE(launch_of(one_of_mpi + kStep).is_alone());
}

TEST(ReadLaunch, PassesOverAWorldOfOneThatIsLeftInTheEnvironment) {
  const Variables left = {{"RANK", "0"}, {"WORLD_SIZE", "1"}};
  EXPECT_EQ(launch_of(left + kOpenMpi).launcher, Launcher::OpenMpi);
  EXPECT_EQ(launch_of(left + kStep).launcher, Launcher::Slurm);
  EXPECT_TRUE(launch_of(left).is_alone());
}

TEST(ReadLaunch, CompletesThePlaceOnTheHostFromSlurm) {
  const Launch launch = launch_of(Variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "5"}} + kStep);
  expect_launch(launch, Launcher::Pmi, 3, 5);
  EXPECT_EQ(launch.local_rank, 1U);
  EXPECT_EQ(launch.num_local_ranks, 2U);
}

TEST(ReadLaunch, KnowsNoNumberOfTasksOnTheHostFromAListItCannotRead) {
  for (const char* list : {"", "2(x", "2(x2", "x", "2,", "2(xy)"}) {
    Variables step = kStep;
    step["SLURM_STEP_TASKS_PER_NODE"] = list;
    EXPECT_EQ(launch_of(step).num_local_ranks, std::nullopt) << list;
  }
}

TEST(ReadLaunch, RefusesMalformedVariables) {
  using test::expect_user_error;
  expect_user_error([] { launch_of({{"RANK", "x"}, {"WORLD_SIZE", "2"}}); }, "RANK must be a whole number");
  expect_user_error([] { launch_of({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}); }, "RANK must be a whole number");
  expect_user_error([] { launch_of({{"RANK", "1"}}); }, "RANK is set without WORLD_SIZE");
  expect_user_error([] { launch_of({{"WORLD_SIZE", "2"}}); }, "WORLD_SIZE is set without RANK");
  expect_user_error([] { launch_of({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}); }, "less than PMI_SIZE: 2 and 2");
  expect_user_error([] { launch_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}); }, "WORLD_SIZE must be 1 to");
  expect_user_error([] { launch_of({{"RANK", "0"}, {"WORLD_SIZE", "4000000000"}}); }, "WORLD_SIZE must be");
  expect_user_error([] { launch_of({{"PLENUM_SECRET", "short"}}); }, "PLENUM_SECRET must have at least");
  Variables local = kTorchrun;
  local["LOCAL_RANK"] = "4";
  expect_user_error([&] { launch_of(local); }, "LOCAL_RANK must be less than LOCAL_WORLD_SIZE: 4 and 4");
  local["LOCAL_WORLD_SIZE"] = "9";
  expect_user_error([&] { launch_of(local); }, "LOCAL_WORLD_SIZE must be 1 to WORLD_SIZE: 9 and 8");
}

TEST(ReadLaunch, RefusesTwoLaunchersThatContradictEachOther) {
  test::expect_user_error([] { launch_of(kTorchrun + kOpenMpi); },
                          "torchrun says rank 5 of 8, mpirun (Open MPI) says rank 2 of 4");
}

}  // namespace
}  // namespace plenum::control
