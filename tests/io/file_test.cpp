#include "plenum/io/file.h"

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "plenum/base/check.h"

#include "tests/io/temporary_directory.h"

namespace plenum::io {
namespace {

using ::testing::HasSubstr;

/// Files of this process may not grow past a limit while this lives: a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &saved_);
    const rlimit tight{bytes, saved_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &tight);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &saved_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit saved_{};
  void (*handler_)(int) = nullptr;
};

TEST(AtomicFile, AppearsWholeOnCommit) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a");
  AtomicFile file(path);
  file.write("hello ");
  EXPECT_FALSE(std::filesystem::exists(path));
  file.write("world");
  file.commit();
  EXPECT_EQ(read_file(path), "hello world");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TemporaryDirectory directory;
  { AtomicFile(directory.file("a")).write("hello"); }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(AtomicFile, KeepsTheOldFileWhenTheDiskIsFull) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a");
  write_file(path, "old");
  {
    const FullDisk full(1000);
    EXPECT_THROW(write_file(path, std::string(100000, 'x')), base::UserError);
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(AtomicFile, NamesTheFileItCannotWrite) {
  const TemporaryDirectory directory;
  try {
    write_file(directory.file("missing/a"), "x");
    FAIL() << "no error";
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("missing/a"));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
}

TEST(ReadFile, RefusesWhatIsNoFile) {
  const TemporaryDirectory directory;
  EXPECT_THROW(read_file(directory.path()), base::UserError);
  EXPECT_THROW(read_file(directory.file("absent")), base::UserError);
}

TEST(MappedFile, GivesTheBytesAndMoves) {
  const TemporaryDirectory directory;
  write_file(directory.file("a"), "abc");
  write_file(directory.file("empty"), "");
  MappedFile file(directory.file("a"));
  MappedFile moved(std::move(file));
  ASSERT_EQ(moved.bytes().size(), 3u);
  EXPECT_EQ(moved.bytes()[2], std::byte{'c'});
  EXPECT_TRUE(MappedFile(directory.file("empty")).bytes().empty());
  moved = MappedFile(directory.file("empty"));
  EXPECT_TRUE(moved.bytes().empty());
}

}  // namespace
}  // namespace plenum::io
