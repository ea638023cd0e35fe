#include "plenum/train/shared_directory.h"

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "plenum/base/check.h"
#include "plenum/comm/local/local_world.h"

#include "tests/support/temporary_directory.h"

namespace plenum::train {
namespace {

using testing::Each;
using testing::HasSubstr;

/// What each rank threw, with a directory for each; empty for nothing.
std::vector<std::string> refusals(const std::vector<std::string>& directories) {
  comm::local::LocalWorld world(directories.size());
  std::vector<std::string> thrown(directories.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < directories.size(); ++i) {
    threads.emplace_back([&, i] {
      const std::unique_ptr<comm::Communicator> ranks = world.communicator(comm::Rank::at(i));
      try {
        require_shared_directory(directories[i], *ranks, std::chrono::seconds(0));
      } catch (const base::UserError& error) {
        thrown[i] = error.what();
      }
    });
  }
  threads.clear();
  return thrown;
}

TEST(SharedDirectory, IsSeenByAllAndLeftEmpty) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path();
  EXPECT_THAT(refusals({path, path, path}), Each(""));
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

TEST(SharedDirectory, IsRefusedOnAllRanksWhereOneHasAnother) {
  const test::TemporaryDirectory directory;
  const test::TemporaryDirectory another;
  EXPECT_THAT(refusals({directory.path(), directory.path(), another.path()}),
              Each(HasSubstr("rank 2 does not see the run directory of rank 0")));
}

TEST(SharedDirectory, ThatCannotBeWrittenIsRefusedOnAllRanks) {
  const std::vector<std::string> thrown = refusals({"/dev/null/no", "/dev/null/no"});
  EXPECT_THAT(thrown[0], HasSubstr("/dev/null/no"));
  EXPECT_THAT(thrown[1], HasSubstr("cannot write into its --run directory"));
}

}  // namespace
}  // namespace plenum::train
