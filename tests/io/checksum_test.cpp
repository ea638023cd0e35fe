#include "plenum/io/checksum.h"

#include <gtest/gtest.h>

#include "plenum/io/file.h"

#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

// The value of the empty input is fixed by the published XXH3 specification.
TEST(Checksum, IsXxh3) {
  EXPECT_EQ(checksum(""), 0x2d06800538d394c2u);
  EXPECT_EQ(format_checksum(checksum("")), "xxh3:2d06800538d394c2");
}

TEST(Checksum, DoesNotDependOnHowTheBytesArrive) {
  const test::TemporaryDirectory directory;
  const std::string text(100000, 'x');
  Checksum pieces;
  for (std::size_t start = 0; start < text.size(); start += 777) {
    pieces.update(std::string_view(text).substr(start, 777));
  }
  EXPECT_EQ(pieces.value(), checksum(text));
  write_file(directory / "a", text);
  EXPECT_EQ(file_checksum(directory / "a"), format_checksum(checksum(text)));
  EXPECT_NE(checksum(text), checksum(text + "x"));
}

}  // namespace
}  // namespace plenum::io
