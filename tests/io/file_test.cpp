#include "plenum/io/file.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "plenum/base/check.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

using ::testing::HasSubstr;

std::ptrdiff_t num_files(const test::TemporaryDirectory& directory) {
  return std::distance(std::filesystem::directory_iterator(directory.path()), {});
}

TEST(AtomicFile, AppearsWholeOnCommit) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "a";
  AtomicFile file(path);
  file.write("hello ");
  EXPECT_FALSE(std::filesystem::exists(path));
  file.write("world");
  file.commit();
  EXPECT_EQ(read_file(path), "hello world");
  EXPECT_EQ(num_files(directory), 1);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const test::TemporaryDirectory directory;
  { AtomicFile(directory / "a").write("hello"); }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(AtomicFile, OfASecretIsForItsOwnerAlone) {
  const test::TemporaryDirectory directory;
  const auto permissions = [&](const std::string& path) {
    return std::filesystem::status(path).permissions();
  };
  constexpr auto kOwner = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  AtomicFile file(directory / "a", Readers::Owner);
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    EXPECT_EQ(permissions(entry.path()), kOwner) << "while it grows";
  file.commit();
  EXPECT_EQ(permissions(directory / "a"), kOwner);
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
  EXPECT_EQ(num_files(directory), 1);
}

TEST(AtomicFile, WritesThroughALinkAndLeavesIt) {
  const test::TemporaryDirectory directory;
  write_file(directory / "real", "old");
  std::filesystem::create_symlink("real", directory / "link");
  write_file(directory / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_EQ(read_file(directory / "real"), "new");
}

TEST(AtomicFile, RefusesToReplaceAPipe) {
  const test::TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(write_file(directory / "pipe", "x"), base::UserError);
  EXPECT_TRUE(std::filesystem::is_fifo(directory / "pipe"));
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

TEST(MovePath, SaysWhyItFailed) {
  const test::TemporaryDirectory directory;
  errno = 0;  // a reason that is read before the call would be "Success"
  test::expect_user_error([&] { move_path(directory / "absent", directory / "a"); },
                          "absent to " + (directory / "a") + ": No such file");
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
