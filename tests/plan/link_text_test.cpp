#include "plenum/plan/link_text.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::plan {
namespace {

TEST(LinkText, ReadsUnits) {
  const Link link = parse_link("latency=100us,bandwidth=1.5GB/s", "link");
  EXPECT_DOUBLE_EQ(link.latency_seconds, 100e-6);
  EXPECT_DOUBLE_EQ(link.bytes_per_second, 1.5e9);
  EXPECT_DOUBLE_EQ(parse_link("bandwidth=7B/s,latency=2s", "link").latency_seconds, 2);
  EXPECT_DOUBLE_EQ(parse_link("bandwidth=7B/s,latency=3ms", "link").bytes_per_second, 7);
  EXPECT_DOUBLE_EQ(parse_link("bandwidth=7kB/s,latency=0ns", "link").bytes_per_second, 7e3);
}

TEST(LinkText, ReadsWhatItWrites) {
  const Link link{.latency_seconds = 1.0 / 3e5, .bytes_per_second = 1e9 / 7};
  const Link read = parse_link(link_text(link), "link");
  EXPECT_EQ(read.latency_seconds, link.latency_seconds);
  EXPECT_EQ(read.bytes_per_second, link.bytes_per_second);
}

TEST(LinkText, RefusesEverythingElse) {
  for (const char* const text :
       {"", "latency=1us", "bandwidth=1GB/s", "latency=1,bandwidth=1GB/s", "latency=1us,bandwidth=1GB",
        "latency=-1us,bandwidth=1GB/s", "latency=1us,bandwidth=0B/s", "latency=us,bandwidth=1GB/s",
        "latency=1us,bandwidth=1e-310B/s", "latency=61s,bandwidth=1GB/s", "latency=1us bandwidth=1GB/s",
        "latency=1us,bandwidth=1GB/s,loss=1%", "latency=1us,bandwidth=1GB/s,"})
    EXPECT_THROW(parse_link(text, "link"), base::UserError) << text;
}

TEST(Link, TheSlowerOfTwoHasTheWorseOfBoth) {
  const Link slower =
      slower_of({.latency_seconds = 1, .bytes_per_second = 5}, {.latency_seconds = 2, .bytes_per_second = 9});
  EXPECT_EQ(slower.latency_seconds, 2);
  EXPECT_EQ(slower.bytes_per_second, 5);
}

}  // namespace
}  // namespace plenum::plan
