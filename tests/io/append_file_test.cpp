#include "plenum/io/append_file.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/io/file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

TEST(AppendFile, CutsBackWhatAnEarlierRunWroteTooMuch) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("a", "kept and lost");
  AppendFile file(path, 4);
  file.append(" too");
  file.flush();
  file.sync();
  EXPECT_EQ(file.size(), 8U);
  EXPECT_EQ(read_file(path), "kept too");
}

TEST(AppendFile, RefusesAFileThatLostBytes) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("a", "abc");
  test::expect_user_error([&] { AppendFile file(path, 4); }, "shorter than an earlier run left it");
  EXPECT_EQ(read_file(path), "abc");
}

TEST(AppendFile, MovesItsTailToAnotherFile) {
  const test::TemporaryDirectory directory;
  AppendFile from(directory / "from");
  AppendFile to(directory / "to");
  const std::string big(3'000'000, 'x');
  from.append("stays");
  from.append("goes" + big);
  to.append("before ");
  from.move_tail(5, to);
  from.append("!");
  from.flush();
  to.flush();
  EXPECT_EQ(read_file(from.path()), "stays!");
  EXPECT_EQ(read_file(to.path()), "before goes" + big);
  EXPECT_EQ(to.size(), 11 + big.size());
}

TEST(AppendFile, OverwritesWhatWasFlushed) {
  const test::TemporaryDirectory directory;
  AppendFile file(directory / "a");
  file.append("head, body");
  file.flush();
  file.overwrite(0, "HEAD");
  file.append("!");
  EXPECT_THROW(file.overwrite(8, "dy!"), base::InternalError);
  file.flush();
  EXPECT_EQ(read_file(file.path()), "HEAD, body!");
}

TEST(AppendFile, NamesTheFileThatCannotBeWritten) {
  const test::TemporaryDirectory directory;
  AppendFile file(directory / "a");
  const test::FileSizeLimit limit(1000);
  file.append(std::string(2000, 'x'));
  test::expect_user_error([&] { file.flush(); }, "cannot write " + file.path());
}

TEST(AppendFile, LeavesNothingTornWhenTheDiskIsFullAndWritesItLater) {
  const test::TemporaryDirectory directory;
  AppendFile file(directory / "a");
  file.append("whole ");
  file.flush();
  file.append("and the rest of it");
  {
    const test::FileSizeLimit full_disk(10);
    test::expect_user_error([&] { file.flush(); }, "cannot write");
    EXPECT_EQ(read_file(directory / "a"), "whole ");
  }
  file.flush();
  EXPECT_EQ(read_file(directory / "a"), "whole and the rest of it");
}

}  // namespace
}  // namespace plenum::io
