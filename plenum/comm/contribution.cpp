#include "plenum/comm/contribution.h"

#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/comm/reduce.h"

namespace plenum::comm {
namespace {

std::string_view kind_name(CollectiveKind kind) {
  static constexpr std::string_view kNames[] = {"all-reduce", "reduce-scatter", "all-gather",
                                                "broadcast",  "all-to-all",     "barrier"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::size_t sum_of(std::span<const std::size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
}

std::vector<std::size_t> copy_of(std::span<const std::size_t> counts) {
  return {counts.begin(), counts.end()};
}

/// Whether two members mean the same collective.
bool agree(const CollectiveShape& one, const CollectiveShape& other) {
  return one.kind == other.kind && one.tag == other.tag && one.root == other.root &&
         one.dtype == other.dtype && one.count == other.count &&
         (one.kind == CollectiveKind::AllToAll || one.counts == other.counts);
}

/// In words, what members must have in common.
std::string describe(const CollectiveShape& of) {
  std::string text(kind_name(of.kind));
  if (of.tag != 0) text += fmt::format(" {:#x}", of.tag);
  if (of.kind == CollectiveKind::Broadcast) text += fmt::format(" from member {}", of.root);
  if (of.kind == CollectiveKind::AllToAll) return text + fmt::format(" of {}", dtype_name(of.dtype));
  if (of.kind == CollectiveKind::ReduceScatter || of.kind == CollectiveKind::AllGather) {
    return text + fmt::format(" of {} {} in parts", fmt::join(of.counts, "+"), dtype_name(of.dtype));
  }
  if (of.kind == CollectiveKind::Barrier) return text;
  return text + fmt::format(" of {} {}", of.count, dtype_name(of.dtype));
}

}  // namespace

std::size_t begin_of(std::span<const std::size_t> counts, std::size_t index) {
  return sum_of(counts.first(index));
}

void check_contribution(const Contribution& own, std::size_t member, std::size_t num_members) {
  const CollectiveShape& shape = own.shape;
  own.source.check_whole();
  own.destination.check_whole();
  base::check(!reduces(shape.kind) || can_reduce(shape.dtype), "{} has no sum on the host",
              dtype_name(shape.dtype));
  switch (shape.kind) {
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather: {
      base::check(shape.counts.size() == num_members, "there must be a count for each member: {} of {}",
                  shape.counts.size(), num_members);
      const bool scatters = shape.kind == CollectiveKind::ReduceScatter;
      const std::size_t whole = scatters ? own.source.count() : own.destination.count();
      const std::size_t part = scatters ? own.destination.count() : own.source.count();
      base::check(whole == sum_of(shape.counts) && part == shape.counts[member],
                  "buffers must have the size of the counts: whole {}, part {}, counts {} and {}", whole,
                  part, sum_of(shape.counts), shape.counts[member]);
      break;
    }
    case CollectiveKind::AllToAll:
      base::check(shape.counts.size() == num_members && shape.receive_counts.size() == num_members,
                  "there must be a count for each member: {} and {} of {}", shape.counts.size(),
                  shape.receive_counts.size(), num_members);
      base::check(own.source.count() == sum_of(shape.counts) &&
                      own.destination.count() == sum_of(shape.receive_counts),
                  "buffers must have the size of the counts: sent {}, received {}", own.source.count(),
                  own.destination.count());
      break;
    case CollectiveKind::Broadcast:
      base::check(shape.root < num_members, "the root must be a member: {} of {}", shape.root, num_members);
      break;
    default:
      break;
  }
  base::check(own.source.dtype == own.destination.dtype, "source and destination must have one type");
}

std::string find_disagreement(std::span<const CollectiveShape* const> shapes, std::span<const Rank> ranks) {
  const CollectiveShape& first = *shapes.front();
  for (std::size_t i = 1; i < shapes.size(); ++i) {
    if (agree(first, *shapes[i])) continue;
    return fmt::format("ranks disagree on a collective: rank {} has {}, rank {} has {}", ranks.front().value,
                       describe(first), ranks[i].value, describe(*shapes[i]));
  }
  if (first.kind != CollectiveKind::AllToAll) return {};
  for (std::size_t from = 0; from < shapes.size(); ++from) {
    for (std::size_t to = 0; to < shapes.size(); ++to) {
      const std::size_t sent = shapes[from]->counts[to];
      const std::size_t expected = shapes[to]->receive_counts[from];
      if (sent == expected) continue;
      return fmt::format(
          "ranks disagree on a collective: rank {} sends {} elements to rank {}, which expects {}",
          ranks[from].value, sent, ranks[to].value, expected);
    }
  }
  return {};
}

Completion ContributionCommunicator::start_checked(Contribution contribution) {
  contribution.shape.dtype = contribution.source.dtype;
  check_contribution(contribution, index(), size());
  return start(std::move(contribution));
}

Completion ContributionCommunicator::start_all_reduce(Elements elements, Tag tag) {
  return start_checked({.shape = {.kind = CollectiveKind::AllReduce, .tag = tag, .count = elements.count()},
                        .source = elements,
                        .destination = elements});
}

Completion ContributionCommunicator::start_reduce_scatter(ConstElements source, Elements destination,
                                                          std::span<const std::size_t> counts, Tag tag) {
  return start_checked(
      {.shape = {.kind = CollectiveKind::ReduceScatter, .tag = tag, .counts = copy_of(counts)},
       .source = source,
       .destination = destination});
}

Completion ContributionCommunicator::start_all_gather(ConstElements source, Elements destination,
                                                      std::span<const std::size_t> counts, Tag tag) {
  return start_checked({.shape = {.kind = CollectiveKind::AllGather, .tag = tag, .counts = copy_of(counts)},
                        .source = source,
                        .destination = destination});
}

Completion ContributionCommunicator::start_broadcast(Elements elements, std::size_t root, Tag tag) {
  return start_checked(
      {.shape = {.kind = CollectiveKind::Broadcast, .tag = tag, .root = root, .count = elements.count()},
       .source = elements,
       .destination = elements});
}

Completion ContributionCommunicator::start_all_to_all(ConstElements source,
                                                      std::span<const std::size_t> send_counts,
                                                      Elements destination,
                                                      std::span<const std::size_t> receive_counts, Tag tag) {
  return start_checked({.shape = {.kind = CollectiveKind::AllToAll,
                                  .tag = tag,
                                  .counts = copy_of(send_counts),
                                  .receive_counts = copy_of(receive_counts)},
                        .source = source,
                        .destination = destination});
}

Completion ContributionCommunicator::start_barrier(Tag tag) {
  return start_checked({.shape = {.kind = CollectiveKind::Barrier, .tag = tag}});
}

}  // namespace plenum::comm
