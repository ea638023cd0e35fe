#include "plenum/io/directory.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(NamesIn, AreNoneOnlyWhereNothingIs) {
  const test::TemporaryDirectory directory;
  EXPECT_THAT(names_in(directory / "absent"), IsEmpty());
  EXPECT_THAT(names_in(directory / "absent/below"), IsEmpty());
  EXPECT_THAT(names_in(directory.path()), IsEmpty());
  directory.write("b", "");
  directory.write("a/c", "");
  EXPECT_THAT(names_in(directory.path()), ElementsAre("a", "b"));
}

TEST(NamesIn, RefusesWhatCannotBeListed) {
  const test::TemporaryDirectory directory;
  test::expect_user_error([&] { names_in(directory.write("file", "")); }, "file is a file, not a directory");
  fs::create_symlink("nowhere", directory / "dangling");
  test::expect_user_error([&] { names_in(directory / "dangling"); }, "dangling: No such file");
  fs::create_symlink("circle", directory / "circle");
  test::expect_user_error([&] { names_in(directory / "circle"); }, "circle: Too many levels");
}

TEST(PathExists, RefusesWhatCannotBeTold) {
  const test::TemporaryDirectory directory;
  EXPECT_TRUE(path_exists(directory.path()));
  EXPECT_FALSE(path_exists(directory / "absent"));
  EXPECT_FALSE(path_exists(directory.write("file", "") + "/below"));
  fs::create_symlink("circle", directory / "circle");
  test::expect_user_error([&] { path_exists(directory / "circle/a"); }, "circle/a: Too many levels");
  test::expect_user_error([&] { path_exists(std::string(300, 'a')); }, "File name too long");
}

TEST(MakeDirectories, MakesEveryLevel) {
  const test::TemporaryDirectory directory;
  make_directories(directory / "a/b/c/");
  EXPECT_TRUE(fs::is_directory(directory / "a/b/c"));
  make_directories(directory / "a/b/c");
  make_directories(".");
}

TEST(MakeDirectories, NamesTheLevelThatIsInTheWay) {
  const test::TemporaryDirectory directory;
  directory.write("a/file", "");
  test::expect_user_error([&] { make_directories(directory / "a/file/b/c"); },
                          (directory / "a/file") + " is a file, not a directory");
}

}  // namespace
}  // namespace plenum::io
