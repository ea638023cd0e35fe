#include "plenum/plan/link.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/base/gather_rounds.h"

namespace plenum::plan {
namespace {

double wire_seconds(const Link& link, double bytes) {
  if (bytes <= 0) return 0;
  base::check(link.bytes_per_second > 0, "a link needs a bandwidth above 0: {}", link.bytes_per_second);
  return bytes / link.bytes_per_second;
}

}  // namespace

LinkSeconds& LinkSeconds::operator+=(const LinkSeconds& other) {
  latency += other.latency;
  bandwidth += other.bandwidth;
  return *this;
}

LinkSeconds message_seconds(const Link& link, double bytes) {
  return {.latency = link.latency_seconds, .bandwidth = wire_seconds(link, bytes)};
}

LinkSeconds gather_seconds(const Link& link, double bytes, std::size_t num_ranks) {
  if (num_ranks < 2) return {};
  // Whether each rank sends its own part to all others or passes on what comes in a ring: n - 1 parts.
  const auto n = static_cast<double>(num_ranks);
  return {.latency = (n - 1) * link.latency_seconds, .bandwidth = wire_seconds(link, bytes * (n - 1) / n)};
}

LinkSeconds agreement_seconds(const Link& link, double bytes, std::size_t num_ranks, tensor::Device kind) {
  LinkSeconds seconds = gather_seconds(link, bytes, num_ranks);
  if (kind == tensor::Device::Cpu && num_ranks > 1)
    seconds.latency = static_cast<double>(base::num_gather_messages(num_ranks)) * link.latency_seconds;
  return seconds;
}

Link slower_of(const Link& a, const Link& b) {
  return {.latency_seconds = std::max(a.latency_seconds, b.latency_seconds),
          .bytes_per_second = std::min(a.bytes_per_second, b.bytes_per_second)};
}

LinkSeconds all_reduce_seconds(const Link& link, double bytes, std::size_t num_ranks) {
  LinkSeconds both = gather_seconds(link, bytes, num_ranks);
  both += both;
  return both;
}

}  // namespace plenum::plan
