#include "plenum/io/lock_file.h"

#include <gtest/gtest.h>

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

TEST(LockFile, IsHeldByOneAtATime) {
  const test::TemporaryDirectory directory;
  {
    const LockFile held(directory / "lock", "taken");
    test::expect_user_error([&] { LockFile(directory / "lock", "taken"); }, "taken");
  }
  const LockFile again(directory / "lock", "taken");
}

TEST(LockFile, NamesAPlaceWhereNoneCanBe) {
  const test::TemporaryDirectory directory;
  test::expect_user_error([&] { LockFile(directory / "none/lock", "taken"); }, "none/lock");
}

TEST(IsLockHeld, KnowsWithoutTakingIt) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "lock";
  EXPECT_FALSE(is_lock_held(path));
  {
    const LockFile lock(path, "taken");
    EXPECT_TRUE(is_lock_held(path));
  }
  EXPECT_FALSE(is_lock_held(path));
  const LockFile again(path, "taken");
}

}  // namespace
}  // namespace plenum::io
