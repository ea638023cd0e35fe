#include "plenum/base/units.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::base {
namespace {

TEST(Units, FormatsCounts) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(16279552), "16,279,552");
}

TEST(Units, FormatsBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1500), "1.5 kB");
  EXPECT_EQ(format_bytes(41943040), "41.9 MB");
  EXPECT_EQ(format_bytes(999999), "1.0 MB");
  EXPECT_EQ(format_bytes(128'000'000'000), "128 GB");
}

TEST(Units, FormatsSeconds) {
  EXPECT_EQ(format_seconds(0.0000123), "12 us");
  EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(format_seconds(5.25), "5.2 s");
  EXPECT_EQ(format_seconds(75), "1 min 15 s");
  EXPECT_EQ(format_seconds(7300), "2 h 1 min");
  EXPECT_EQ(format_seconds(3 * 86400 + 7200), "3 d 2 h");
}

TEST(Units, ParsesTimes) {
  EXPECT_DOUBLE_EQ(parse_seconds("90s", "x"), 90);
  EXPECT_DOUBLE_EQ(parse_seconds("30min", "x"), 1800);
  EXPECT_DOUBLE_EQ(parse_seconds("47h", "x"), 47 * 3600);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5d", "x"), 129'600);
  for (const char* text : {"", "90", "h", "-1h", "0s", "3 weeks", "nans"}) {
    EXPECT_THROW(parse_seconds(text, "x"), UserError) << text;
  }
}

TEST(Units, ParsesFractions) {
  EXPECT_DOUBLE_EQ(parse_fraction("0.5%", "x"), 0.005);
  EXPECT_DOUBLE_EQ(parse_fraction("1", "x"), 1);
  EXPECT_THROW(parse_fraction("-1%", "x"), UserError);
  EXPECT_THROW(parse_fraction("nan", "x"), UserError);
  EXPECT_THROW(parse_fraction("%", "x"), UserError);
}

TEST(Units, ParsesWholeNumbersAndNothingMore) {
  EXPECT_EQ(parse_integer("-12", "x"), -12);
  for (const char* text : {"", "1.5", "12a", " 12", "0x10", "9223372036854775808"}) {
    EXPECT_THROW(parse_integer(text, "x"), UserError) << text;
  }
}

}  // namespace
}  // namespace plenum::base
