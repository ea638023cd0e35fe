#include "plenum/io/placed_file.h"

#include <string>

#include <gtest/gtest.h>

#include "plenum/io/file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

TEST(PlacedFile, IsWrittenInPartsBySeveral) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "a";
  PlacedFile::make(path, 10);
  EXPECT_EQ(read_file(path), std::string(10, '\0'));
  PlacedFile one(path);
  PlacedFile two(path);
  EXPECT_EQ(two.size_bytes(), 10U);
  two.write(8, "ij");
  one.write(0, "abcd");
  two.write(4, "efgh");
  one.sync();
  two.sync();
  EXPECT_EQ(read_file(path), "abcdefghij");
  EXPECT_EQ(one.written_bytes(), 4U);
  EXPECT_EQ(two.written_bytes(), 6U);
  BlockSums sums = one.sums();
  sums.add(two.sums().values());
  EXPECT_EQ(sums.values().front(), file_block_sums(path).values().front());
}

TEST(PlacedFile, TakesMoreThanItChecksumsAtATime) {
  const test::TemporaryDirectory directory;
  std::string bytes(3'000'000, 'x');
  bytes[2'500'000] = 'y';
  PlacedFile::make(directory / "a", bytes.size());
  PlacedFile file(directory / "a");
  file.write(0, bytes);
  EXPECT_TRUE(read_file(directory / "a") == bytes);
  EXPECT_EQ(file.sums().values().front(), file_block_sums(directory / "a").values().front());
}

TEST(PlacedFile, NamesTheFileThatCannotBeWritten) {
  const test::TemporaryDirectory directory;
  PlacedFile::make(directory / "a", 8'000);
  test::expect_user_error([&] { PlacedFile::make(directory / "a", 1); }, "a: File exists");
  test::expect_user_error([&] { PlacedFile{directory / "none"}; }, "none: No such file");
  PlacedFile file(directory / "a");
  const test::FileSizeLimit full_disk(4'000);
  file.write(0, "abcd");
  test::expect_user_error([&] { file.write(4'000, "abcd"); }, "cannot write");
  test::expect_user_error([&] { PlacedFile::make(directory / "b", 8'000); }, "cannot write");
}

}  // namespace
}  // namespace plenum::io
