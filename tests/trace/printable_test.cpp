#include "plenum/trace/printable.h"

#include <gtest/gtest.h>

namespace plenum::trace {
namespace {

TEST(Printable, KeepsWhatCanBeShown) {
  for (const std::string text : {"", "1f1b, D=4", "µs · Größe", "日本 €", "😀"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ReplacesWhatCannot) {
  EXPECT_EQ(printable("a\nb"), "a\uFFFDb");
  EXPECT_EQ(printable("\x1b[0m"), "\uFFFD[0m");
  EXPECT_EQ(printable("a\xff"), "a\uFFFD");
  EXPECT_EQ(printable("\xc3"), "\uFFFD");                      // cut off
  EXPECT_EQ(printable("\xc0\xaf"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");  // surrogate
  EXPECT_EQ(printable("\xef\xbf\xbf"), "\uFFFD\uFFFD\uFFFD");  // U+FFFF
  EXPECT_EQ(printable("\xf4\x90\x80\x80").size(), 4u * 3);     // above U+10FFFF
  EXPECT_EQ(printable(std::string("\0x", 2)), "\uFFFDx");
}

TEST(Excerpt, CutsBetweenCharactersAndSaysSo) {
  EXPECT_EQ(excerpt("", 3), "");
  EXPECT_EQ(excerpt("日本語", 3), "日本語");
  EXPECT_EQ(excerpt("日本語x", 3), "日本語...");
  EXPECT_EQ(excerpt("a\xe9\n", 3), "a\uFFFD\uFFFD");
  EXPECT_EQ(excerpt(std::string(10'000, 'a')).size(), 63u);
}

TEST(NumColumns, CountsCharacters) {
  EXPECT_EQ(num_columns(""), 0u);
  EXPECT_EQ(num_columns("µs ─┴"), 5u);
}

}  // namespace
}  // namespace plenum::trace
