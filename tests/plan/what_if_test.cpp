#include "plenum/plan/what_if.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::plan {
namespace {

TEST(WhatIf, ChangesWhatItNamesByAFactorOrToAValue) {
  Cluster cluster{.within_node = {1e-6, 1e9}, .between_nodes = {1e-5, 1e8}, .memory_bytes = 10};
  cluster.device.peak_flops = 5;
  cluster.device.peak_bytes_per_second = 7;
  const auto with = [&](const char* text) { return changed(cluster, parse_what_if(text, "--what-if")); };
  EXPECT_EQ(with("link.bandwidth=2x").within_node.bytes_per_second, 2e9);
  EXPECT_EQ(with("link.bandwidth=2x").between_nodes.bytes_per_second, 2e8);
  EXPECT_EQ(with("link.latency=3e-6").within_node.latency_seconds, 3e-6);
  EXPECT_EQ(with("link.latency=3e-6").between_nodes.latency_seconds, 3e-6);
  EXPECT_EQ(with("device.flops=0.5x").device.peak_flops, 2.5);
  EXPECT_EQ(with("device.bandwidth=9").device.peak_bytes_per_second, 9);
  EXPECT_EQ(with("memory=40e9").memory_bytes, 40e9);
  EXPECT_EQ(with("memory=40e9").device.peak_flops, 5);
}

TEST(WhatIf, IsWrittenAsItIsRead) {
  for (const char* text : {"link.bandwidth=2x", "link.latency=1e-06", "device.flops=0.5x", "memory=4e+10"})
    EXPECT_EQ(parse_what_if(text, "--what-if").text(), text);
}

TEST(WhatIf, RefusesWhatItDoesNotUnderstand) {
  for (const char* text : {"", "memory", "memory=", "memory=x", "memory=0", "memory=-1x", "memory=2y",
                           "ram=2x", "memory=nan", "memory=1e99", "link.bandwidth=1e-310"})
    EXPECT_THROW(parse_what_if(text, "--what-if"), base::UserError) << text;
}

}  // namespace
}  // namespace plenum::plan
