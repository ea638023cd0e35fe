#include "plenum/io/atomic_directory.h"

#include <cerrno>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "plenum/io/checksum.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(AtomicDirectory, AppearsWholeOrNotAtAll) {
  const test::TemporaryDirectory parent;
  const std::string path = parent / "a/b";
  {
    AtomicDirectory abandoned(path);
    abandoned.write("x", "1");
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_THAT(names_in(parent / "a"), IsEmpty());
  AtomicDirectory directory(path);
  directory.write("x", "2");
  directory.commit();
  EXPECT_THAT(names_in(parent / "a"), ElementsAre("b"));
  EXPECT_EQ(read_file(path + "/x"), "2");
}

TEST(AtomicDirectory, RecordsWhatItWrote) {
  const test::TemporaryDirectory parent;
  AtomicDirectory directory(parent / "a");
  const std::string large(3'000'000, 'x');
  const FileRecord record = directory.write("x", [&](AtomicDirectory::Sink sink) {
    sink("begin");
    sink(large);
    sink("");
    sink("end");
  });
  directory.commit();
  EXPECT_EQ(read_file(parent / "a/x"), "begin" + large + "end");
  EXPECT_EQ(record.name, "x");
  EXPECT_EQ(record.size_bytes, large.size() + 8);
  EXPECT_EQ(record.checksum, file_checksum(parent / "a/x"));
}

TEST(AtomicDirectory, TakesThePlaceOfAnotherOnlyIfAsked) {
  const test::TemporaryDirectory parent;
  parent.write("a/old", "");
  test::expect_user_error([&] { AtomicDirectory(parent / "a"); }, "is there already");
  EXPECT_THAT(names_in(parent / "a"), ElementsAre("old"));
  AtomicDirectory directory(parent / "a/", Replace::Yes);
  directory.write("new", "");
  directory.commit();
  EXPECT_THAT(names_in(parent / "a"), ElementsAre("new"));
  EXPECT_THAT(names_in(parent.path()), ElementsAre("a"));
}

TEST(AtomicDirectory, DoesNotTakeANameThatWasTakenMeanwhile) {
  const test::TemporaryDirectory parent;
  {
    AtomicDirectory directory(parent / "a");
    parent.write("a/theirs", "");
    test::expect_user_error([&] { directory.commit(); }, "is there already");
  }
  EXPECT_THAT(names_in(parent.path()), ElementsAre("a"));
  EXPECT_THAT(names_in(parent / "a"), ElementsAre("theirs"));
}

TEST(AtomicDirectory, TakesThePlaceOfAnEmptyOne) {
  const test::TemporaryDirectory parent;
  fs::create_directory(parent / "a");
  AtomicDirectory directory(parent / "a");
  directory.write("x", "1");
  directory.commit();
  EXPECT_THAT(names_in(parent / "a"), ElementsAre("x"));
}

TEST(AtomicDirectory, DoesNotTouchWhatIsInTheWay) {
  const test::TemporaryDirectory parent;
  parent.write("a/old", "");
  parent.write("a.replaced/mine", "");
  test::expect_user_error([&] { AtomicDirectory(parent / "a", Replace::Yes); }, "a.replaced is in the way");
  test::expect_user_error([&] { AtomicDirectory(parent / "a/old", Replace::Yes); },
                          "a/old is a file, not a directory");
  EXPECT_THAT(names_in(parent.path()), ElementsAre("a", "a.replaced"));
  test::expect_user_error([&] { AtomicDirectory(parent / "a/old/b"); }, "a/old is a file, not a directory");
}

TEST(AtomicDirectory, SaysWhyItCannotBeMade) {
  const test::TemporaryDirectory parent;
  errno = 0;
  test::expect_user_error([&] { AtomicDirectory(parent / std::string(250, 'a')); }, ": File name too long");
}

TEST(AtomicDirectory, TakesThePlaceOfWhatACrashLeft) {
  const test::TemporaryDirectory parent;
  parent.write("a.replaced/old", "");
  AtomicDirectory directory(parent / "a", Replace::Yes);
  EXPECT_THAT(names_in(parent / "a"), ElementsAre("old"));
  directory.write("new", "");
  directory.commit();
  EXPECT_THAT(names_in(parent.path()), ElementsAre("a"));
  EXPECT_THAT(names_in(parent / "a"), ElementsAre("new"));
}

TEST(AtomicDirectory, HasThePermissionsOfANewDirectory) {
  const test::TemporaryDirectory parent;
  const mode_t earlier = ::umask(0027);
  AtomicDirectory directory(parent / "a");
  directory.commit();
  write_file(parent / "file", "");
  ::umask(earlier);
  const auto permissions = [](const std::string& path) { return fs::status(path).permissions(); };
  EXPECT_EQ(permissions(parent / "a"), fs::perms(0750));
  EXPECT_EQ(permissions(parent / "file"), fs::perms(0640));
}

TEST(AtomicDirectory, LeavesNothingOnAFullDisk) {
  const test::TemporaryDirectory parent;
  {
    AtomicDirectory directory(parent / "a");
    const test::FileSizeLimit full_disk(100);
    test::expect_user_error([&] { directory.write("x", std::string(200, 'x')); }, "cannot write");
  }
  EXPECT_THAT(names_in(parent.path()), IsEmpty());
}

TEST(RestoreReplaced, PrefersTheNewOne) {
  const test::TemporaryDirectory parent;
  parent.write("a.replaced/old", "");
  restore_replaced(parent / "a");
  EXPECT_THAT(names_in(parent / "a"), ElementsAre("old"));
  parent.write("a.replaced/older", "");
  restore_replaced(parent / "a");
  EXPECT_THAT(names_in(parent.path()), ElementsAre("a"));
  EXPECT_THAT(names_in(parent / "a"), ElementsAre("old"));
  restore_replaced(parent / "b");
}

}  // namespace
}  // namespace plenum::io
