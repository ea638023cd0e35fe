#include "plenum/plan/link.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::plan {
namespace {

constexpr Link kLink{.latency_seconds = 3, .bytes_per_second = 2};

TEST(Link, TakesLatencyAndBandwidthForAMessage) {
  const LinkSeconds seconds = message_seconds(kLink, 10);
  EXPECT_DOUBLE_EQ(seconds.latency, 3);
  EXPECT_DOUBLE_EQ(seconds.bandwidth, 5);
  EXPECT_DOUBLE_EQ(seconds.total(), 8);
  EXPECT_DOUBLE_EQ(message_seconds(kLink, 0).total(), 3);
}

TEST(Link, CostsOneRankNothing) {
  EXPECT_EQ(gather_seconds(kLink, 100, 1).total(), 0);
  EXPECT_EQ(all_reduce_seconds(kLink, 100, 1).total(), 0);
  EXPECT_EQ(all_reduce_seconds(kLink, 100, 0).total(), 0);
}

/// What ranks send when each sends its own part to all others, one after another: messages of the busiest
/// rank, and its bytes.
struct Sent {
  double messages = 0;
  double bytes = 0;
};

Sent sent_directly(double bytes, std::size_t num_ranks, int num_exchanges) {
  std::vector<Sent> ranks(num_ranks);
  for (int exchange = 0; exchange < num_exchanges; ++exchange) {
    for (std::size_t from = 0; from < num_ranks; ++from) {
      for (std::size_t to = 0; to < num_ranks; ++to) {
        if (to == from) continue;
        ranks[from].messages += 1;
        ranks[from].bytes += bytes / static_cast<double>(num_ranks);
      }
    }
  }
  return *std::ranges::max_element(ranks, {}, &Sent::bytes);
}

TEST(Link, CostsCollectivesWhatTheirDirectExchangeSends) {
  for (const std::size_t num_ranks : {2, 3, 4, 7, 64}) {
    const Sent gather = sent_directly(840, num_ranks, 1);
    EXPECT_DOUBLE_EQ(gather_seconds(kLink, 840, num_ranks).latency, 3 * gather.messages);
    EXPECT_NEAR(gather_seconds(kLink, 840, num_ranks).bandwidth, gather.bytes / 2, 1e-9);
    // Slices to their owners, then sums to everyone.
    const Sent reduce = sent_directly(840, num_ranks, 2);
    EXPECT_DOUBLE_EQ(all_reduce_seconds(kLink, 840, num_ranks).latency, 3 * reduce.messages);
    EXPECT_NEAR(all_reduce_seconds(kLink, 840, num_ranks).bandwidth, reduce.bytes / 2, 1e-9);
  }
}

TEST(Link, CostsAnAgreementOnCpusTheMessagesOfItsRounds) {
  const auto latency = [](std::size_t num_ranks, tensor::Device kind) {
    return agreement_seconds(kLink, 840, num_ranks, kind).latency;
  };
  // One round, two of 7 messages, three of 15.
  EXPECT_DOUBLE_EQ(latency(2, tensor::Device::Cpu), 3);
  EXPECT_DOUBLE_EQ(latency(16, tensor::Device::Cpu), 15 * 3);
  EXPECT_DOUBLE_EQ(latency(64, tensor::Device::Cpu), 2 * 7 * 3);
  EXPECT_DOUBLE_EQ(latency(4096, tensor::Device::Cpu), 3 * 15 * 3);
  EXPECT_DOUBLE_EQ(latency(4096, tensor::Device::Cuda), 3 * 4095);
  EXPECT_EQ(agreement_seconds(kLink, 840, 1, tensor::Device::Cpu).total(), 0);
  for (const std::size_t num_ranks : {2, 3, 5, 9, 64, 1000}) {
    const LinkSeconds gather = gather_seconds(kLink, 840, num_ranks);
    const LinkSeconds agreement = agreement_seconds(kLink, 840, num_ranks, tensor::Device::Cpu);
    EXPECT_LE(agreement.latency, gather.latency);
    EXPECT_EQ(agreement.bandwidth, gather.bandwidth);
  }
}

TEST(Link, RefusesToMoveBytesWithoutBandwidth) {
  EXPECT_THROW(static_cast<void>(message_seconds({.latency_seconds = 1}, 1)), base::InternalError);
}

}  // namespace
}  // namespace plenum::plan
