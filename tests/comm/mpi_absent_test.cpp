#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/comm/mpi/mpi_world.h"

namespace plenum::comm {
namespace {

TEST(MpiWorld, SaysInABuildWithoutMpiWhatToInstall) {
  if (mpi::is_built()) GTEST_SKIP() << "this build has MPI: see test_distributed";
  ASSERT_TRUE(mpi::obstacle());
  try {
    const mpi::MpiWorld world;
    FAIL() << "there is no MPI";
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("libopenmpi-dev"));
  }
}

TEST(MpiWorld, NamesItsLibrary) {
  if (!mpi::is_built()) GTEST_SKIP() << *mpi::obstacle();
  EXPECT_FALSE(mpi::obstacle());
  EXPECT_THAT(mpi::library_name(), testing::ContainsRegex("MPI|mpi"));
  EXPECT_EQ(mpi::library_name().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace plenum::comm
