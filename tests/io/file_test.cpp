#include "plenum/io/file.h"

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "plenum/base/check.h"

#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

using ::testing::HasSubstr;

TEST(AtomicFile, AppearsWholeOnCommit) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "a";
  AtomicFile file(path);
  file.write("hello ");
  EXPECT_FALSE(std::filesystem::exists(path));
  file.write("world");
  file.commit();
  EXPECT_EQ(read_file(path), "hello world");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const test::TemporaryDirectory directory;
  { AtomicFile(directory / "a").write("hello"); }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(AtomicFile, KeepsTheOldFileWhenTheDiskIsFull) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "a";
  write_file(path, "old");
  {
    const test::FileSizeLimit full_disk(1000);
    EXPECT_THROW(write_file(path, std::string(100000, 'x')), base::UserError);
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(AtomicFile, NamesTheFileItCannotWrite) {
  const test::TemporaryDirectory directory;
  try {
    write_file(directory / "missing/a", "x");
    FAIL() << "no error";
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("missing/a"));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
}

TEST(ReadFile, RefusesWhatIsNoFile) {
  const test::TemporaryDirectory directory;
  EXPECT_THROW(read_file(directory.path()), base::UserError);
  EXPECT_THROW(read_file(directory / "absent"), base::UserError);
}

TEST(MappedFile, GivesTheBytesAndMoves) {
  const test::TemporaryDirectory directory;
  write_file(directory / "a", "abc");
  write_file(directory / "empty", "");
  MappedFile file(directory / "a");
  MappedFile moved(std::move(file));
  ASSERT_EQ(moved.bytes().size(), 3u);
  EXPECT_EQ(moved.bytes()[2], std::byte{'c'});
  EXPECT_TRUE(MappedFile(directory / "empty").bytes().empty());
  moved = MappedFile(directory / "empty");
  EXPECT_TRUE(moved.bytes().empty());
}

}  // namespace
}  // namespace plenum::io
