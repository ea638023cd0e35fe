#pragma once

#include <cstddef>

#include "plenum/tensor/device.h"

namespace plenum::plan {

/// What ranks talk over: a message of b bytes takes latency + b / bandwidth.
struct Link {
  double latency_seconds = 0;
  double bytes_per_second = 0;  ///< one way, of one rank
};

/// Time by what it is spent on, in seconds.
struct LinkSeconds {
  double latency = 0;
  double bandwidth = 0;

  double total() const { return latency + bandwidth; }
  LinkSeconds& operator+=(const LinkSeconds& other);
};

// Of collectives over n ranks, each in n - 1 rounds of messages; nothing for one rank. `bytes` are those of
// the whole: what an all-reduce sums, and a gather or reduce-scatter has before or behind it.
LinkSeconds message_seconds(const Link& link, double bytes);
LinkSeconds gather_seconds(const Link& link, double bytes, std::size_t num_ranks);  ///< or reduce-scatter
LinkSeconds all_reduce_seconds(const Link& link, double bytes, std::size_t num_ranks);

/// What ranks on devices of a kind all tell each other, `bytes` together: so few that on CPUs they travel
/// whole in the rounds of base/gather_rounds (comm/mpi/greeting), with a latency for each message that a rank
/// sends. On GPUs, where NCCL has its ring, they are gathered. Never longer than gather_seconds().
LinkSeconds agreement_seconds(const Link& link, double bytes, std::size_t num_ranks, tensor::Device kind);

/// A link that has the longer latency and the smaller bandwidth of two.
Link slower_of(const Link& a, const Link& b);

}  // namespace plenum::plan
