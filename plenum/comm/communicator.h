#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/base/ids.h"
#include "plenum/comm/completion.h"
#include "plenum/comm/elements.h"
#include "plenum/tensor/work_queue.h"

namespace plenum::comm {

using base::Rank;

/// Names a message or a collective: what both ends must agree on. Messages with different tags may be
/// received in another order than they were sent in. An engine whose own tags are too narrow for all 64 bits
/// (MPI: an int up to MPI_TAG_UB) or that has none (NCCL) puts the tag into a header, or keeps what arrives
/// by source and tag until it is asked for.
using Tag = std::uint64_t;

/// Thrown from every operation of every rank after abort_all(): another rank failed, and this is who and why.
class Aborted : public std::runtime_error {
 public:
  Aborted(Rank failed_rank, std::string_view reason);
  Rank failed_rank() const { return failed_rank_; }

 private:
  Rank failed_rank_;
};

/// The members of a group of ranks talk to each other through one communicator each. A member is addressed by
/// its place in the group, 0 ... size() - 1.
///
/// Collectives are started by all members, in the same order and with the same tag; engines that can see both
/// ends throw InternalError where tag, kind, type or sizes differ, naming both ranks. Reductions give all
/// members the same bytes, and the same bytes again for the same group, sizes and inputs, whatever the
/// timing; in which order they sum is the engine's own affair. Source and destination may be the same memory
/// in the ways the functions say, else they must not overlap.
///
/// A communicator is used by one thread at a time. Threads of a rank that communicate at the same time each
/// have their own (duplicate()), so that their collectives cannot be mixed up.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::size_t index() const = 0;
  virtual std::size_t size() const = 0;
  /// The rank of a member, for messages to people.
  virtual Rank rank_of(std::size_t member) const = 0;

  /// Overwrites `elements` of every member with the sum over all members.
  virtual Completion start_all_reduce(Elements elements, Tag tag) = 0;
  /// Sums `source` of counts[0] + counts[1] + ... elements over all members and overwrites `destination` with
  /// part index() of the result. `destination` may be that part of `source`; the rest of `source` is kept.
  virtual Completion start_reduce_scatter(ConstElements source, Elements destination,
                                          std::span<const std::size_t> counts, Tag tag) = 0;
  /// Overwrites `destination` with the sources of all members one after another, counts[i] elements of member
  /// i. `source` may be part index() of `destination`.
  virtual Completion start_all_gather(ConstElements source, Elements destination,
                                      std::span<const std::size_t> counts, Tag tag) = 0;
  /// Overwrites `elements` of every member with those of `root`.
  virtual Completion start_broadcast(Elements elements, std::size_t root, Tag tag) = 0;
  /// Sends send_counts[i] elements to member i and gets receive_counts[i] from it, both lying one after
  /// another.
  virtual Completion start_all_to_all(ConstElements source, std::span<const std::size_t> send_counts,
                                      Elements destination, std::span<const std::size_t> receive_counts,
                                      Tag tag) = 0;
  /// Done when all members have started it.
  virtual Completion start_barrier(Tag tag) = 0;

  /// Messages between two members with the same tag arrive in the order in which they were sent. *Starting* a
  /// send does not wait for its receive to be started; its Completion may.
  virtual Completion start_send(std::size_t to, Tag tag, ConstElements elements) = 0;
  virtual Completion start_receive(std::size_t from, Tag tag, Elements elements) = 0;

  /// A communicator of some of the members, in the given order; called by exactly those, who all name the
  /// same members and create groups of the same members in the same order. May wait until the first of them
  /// calls it.
  virtual std::unique_ptr<Communicator> group(std::span<const std::size_t> members) = 0;
  /// Another communicator of the same members.
  std::unique_ptr<Communicator> duplicate();

  /// Lets everything that is started from now on be done by a device: it goes into the queue, which is
  /// borrowed, takes its turn there, and counts as complete once it is put in. Throws InternalError if the
  /// engine works in the host's memory, as those that do not say otherwise, unless there is nobody to
  /// communicate with.
  virtual void issue_into(const tensor::WorkQueue& queue);

  /// Ends all communication of all ranks that come from the same world: whoever waits or will wait gets
  /// Aborted. The first call counts. May be called by any thread.
  virtual void abort_all(Rank failed_rank, std::string_view reason) = 0;
};

}  // namespace plenum::comm
