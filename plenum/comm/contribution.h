#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plenum/comm/communicator.h"

namespace plenum::comm {

enum class CollectiveKind : std::uint8_t {
  AllReduce,
  ReduceScatter,
  AllGather,
  Broadcast,
  AllToAll,
  Barrier
};

/// What a member says of a collective, without its buffers: what members must agree on.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::Barrier;
  tensor::DType dtype = tensor::DType::Byte;
  Tag tag = 0;
  std::size_t root = 0;                          ///< broadcast
  std::size_t count = 0;                         ///< elements; all-reduce and broadcast
  std::vector<std::size_t> counts = {};          ///< of parts; all-to-all: sent
  std::vector<std::size_t> receive_counts = {};  ///< all-to-all
};

/// What one member brings to a collective.
struct Contribution {
  CollectiveShape shape = {};
  ConstElements source = {};
  Elements destination = {};
};

/// Throws InternalError if what a member brings contradicts itself.
void check_contribution(const Contribution& own, std::size_t member, std::size_t num_members);

/// Who disagrees with whom about what; empty if nobody does.
std::string find_disagreement(std::span<const CollectiveShape* const> shapes, std::span<const Rank> ranks);

/// Where part `index` begins.
std::size_t begin_of(std::span<const std::size_t> counts, std::size_t index);

/// A communicator of an engine that takes every collective in the same form.
class ContributionCommunicator : public Communicator {
 public:
  Completion start_all_reduce(Elements elements, Tag tag) final;
  Completion start_reduce_scatter(ConstElements source, Elements destination,
                                  std::span<const std::size_t> counts, Tag tag) final;
  Completion start_all_gather(ConstElements source, Elements destination, std::span<const std::size_t> counts,
                              Tag tag) final;
  Completion start_broadcast(Elements elements, std::size_t root, Tag tag) final;
  Completion start_all_to_all(ConstElements source, std::span<const std::size_t> send_counts,
                              Elements destination, std::span<const std::size_t> receive_counts,
                              Tag tag) final;
  Completion start_barrier(Tag tag) final;

 protected:
  /// Starts a collective to which this member brings a contribution that does not contradict itself.
  virtual Completion start(Contribution contribution) = 0;

 private:
  Completion start_checked(Contribution contribution);
};

}  // namespace plenum::comm
