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

/// Recipes that start several processes, with what stands for the machines that they need.
class Recipes : public TrainingProgram {
 protected:
  /// Puts a program of this name and content first in the PATH of recipes.
  void stand_in(const std::string& name, const std::string& script) const {
    directory_.write("bin/" + name, "#!/bin/sh\n" + script);
    std::filesystem::permissions(directory_ / ("bin/" + name), std::filesystem::perms::owner_all);
  }

  test::ProgramResult run_recipe(const std::string& name, const std::string& variables,
                                 const std::string& arguments = "") const {
    return test::run_command("PATH=\"$PWD/bin:$PATH\" PLENUM='" PLENUM_BINARY "' DATA=data RUN=run " +
                                 variables + " '" PLENUM_SOURCE_DIR "/recipes/" + name + "' " + arguments,
                             directory_.path());
  }

  static constexpr const char* kSmall =
      "--model bert-tiny --layers 2 --width 16 --heads 2 --max-positions 32 --global-batch 16 --steps 4 "
      "--learning-rate 1e-3 --device cpu";
};

TEST_F(Recipes, ForMpiTrainsOnTheMachinesOfAHostFile) {
  if (const std::optional<std::string> obstacle = comm::mpi::obstacle()) GTEST_SKIP() << *obstacle;
  if (test::run_command("mpirun --version").output.find("Open MPI") == std::string::npos)
    GTEST_SKIP() << "host files are written for Open MPI, which is not here";
  directory_.write("hosts", "# two processes\nlocalhost slots=2\n\n");
  const test::ProgramResult trained =
      run_recipe("mpi.sh",
                 "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                 "OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none "
                 "OMPI_MCA_btl_vader_single_copy_mechanism=none",
                 kSmall);
  EXPECT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.output, HasSubstr("trained 4 of 4 steps"));
  EXPECT_THAT(trained.errors, HasSubstr("2 ranks of "));
}

TEST_F(Recipes, ForAPipelineTrainsOverMpi) {
  if (const std::optional<std::string> obstacle = comm::mpi::obstacle()) GTEST_SKIP() << *obstacle;
  if (test::run_command("mpirun --version").output.find("Open MPI") == std::string::npos)
    GTEST_SKIP() << "the recipe is written for Open MPI, which is not here";
  const test::ProgramResult trained =
      run_recipe("pipeline.sh",
                 "PROCESSES=2 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                 "OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none",
                 kSmall + std::string(" --pp 2"));
  EXPECT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.output, HasSubstr("trained 4 of 4 steps"));
  EXPECT_THAT(trained.errors, HasSubstr("2 to a model (1f1b, stages of 1 and 1 layers)"));
}

TEST_F(Recipes, ForSlurmQueuesItselfAgainWhenItWasStopped) {
  stand_in("srun", "[ \"$SIGNAL\" = none ] && exec \"$@\"\nexec \"$@\" --steps 1000000 --stop-after 1s\n");
  stand_in("scontrol", "echo \"$@\" >> requeued\n");
  const std::string variables = "SLURM_JOB_ID=17 DEVICE=cpu ";
  EXPECT_EQ(run_recipe("slurm.sh", variables, kSmall).exit_code, kStoppedCode);
  EXPECT_EQ(read("requeued"), "requeue 17\n");
  const test::ProgramResult finished = run_recipe("slurm.sh", variables + "SIGNAL=none", kSmall);
  EXPECT_EQ(finished.exit_code, 0) << finished.errors;
  EXPECT_EQ(read("requeued"), "requeue 17\n");
}

TEST_F(Recipes, ForSeveralGpusAsksForAllOfThem) {
  stand_in("nvidia-smi", "echo GPU 0; echo GPU 1; echo GPU 2\n");
  const test::ProgramResult printed = run_recipe("several-gpus.sh", "", "--print-config");
  EXPECT_EQ(printed.exit_code, 0) << printed.errors;
  EXPECT_THAT(printed.output, AllOf(HasSubstr("gpus = 3"), HasSubstr("restart = 3")));
}

TEST_F(Recipes, OfTwoPhasesContinuesOnLongerSequences) {
  const std::string variables =
      "TEXT=in WORK=phases MODEL=bert-tiny VOCABULARY=150 STEPS_128=4 STEPS_512=3 DOCUMENTS=line ";
  const test::ProgramResult trained =
      run_recipe("two-phases.sh", variables, "--global-batch 8 --learning-rate 1e-3 --device cpu");
  EXPECT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.output, AllOf(HasSubstr("trained 4 of 4 steps"), HasSubstr("trained 3 of 3 steps")));
  EXPECT_THAT(read("phases/phase-1/config.toml"), HasSubstr("data-128"));
  EXPECT_THAT(read("phases/phase-2/config.toml"),
              AllOf(HasSubstr("data-512"), HasSubstr("phase-1/checkpoints/step-")));
  const test::ProgramResult again =
      run_recipe("two-phases.sh", variables, "--global-batch 8 --learning-rate 1e-3 --device cpu");
  EXPECT_EQ(again.exit_code, 0) << again.errors;
}

}  // namespace
}  // namespace plenum::cli
