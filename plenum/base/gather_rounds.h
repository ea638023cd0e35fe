#pragma once

#include <cstddef>
#include <vector>

namespace plenum::base {

// How each of n members comes to have the records of all in few rounds (Bruck's all-gather, of radix r). A
// member holds a run of records, its own first, then those of the members after it. In a round it sends the
// run to up to r - 1 others, receives theirs, and holds r times as many.
//
// A round takes until the others look, and each of its messages what it costs to send and receive one. For
// 1,024 members, at 0.6 us for a message, in us:
//
//   rounds                                             10     5     4     3     2     1
//   messages of a member                               10    15    19    28    62 1,023
//   others look all the time (2 us a round)            26    19    19    23    41   616
//   they sleep between two looks (50 us a round)      506   259   211   167   137   664
//
// Those that came first sleep (comm/mpi/patience), so few rounds count more than few messages. There are as
// many rounds as kMostGatherRadix needs, and of as many rounds those with the fewest messages. Up to 16
// members, a machine's, exchange everything in one round, in which nobody depends on another to pass it on.
inline constexpr std::size_t kMostGatherRadix = 16;

/// One message of a round, to the member `distance` before the sender: the first records that its sender
/// holds, which are the receiver's records `distance` and on.
struct GatherMessage {
  std::size_t distance = 0;
  std::size_t num_records = 0;
};

/// What each member sends, and receives, in a round.
using GatherRound = std::vector<GatherMessage>;

/// One round after another; none for one member.
std::vector<GatherRound> gather_rounds(std::size_t num_members);

/// Messages that one member sends in all rounds together, and as many it receives.
std::size_t num_gather_messages(std::size_t num_members);

}  // namespace plenum::base
