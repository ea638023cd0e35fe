#include "plenum/comm/local/meeting.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/comm/local/reduce.h"

namespace plenum::comm::local {
namespace {

/// Large enough to be worth a thread's while, small enough to divide well.
constexpr std::size_t kTaskBytes = 64 * 1024;

std::string_view kind_name(CollectiveKind kind) {
  static constexpr std::string_view kNames[] = {"all-reduce", "reduce-scatter", "all-gather",
                                                "broadcast",  "all-to-all",     "barrier"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::size_t sum_of(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

std::size_t begin_of(const std::vector<std::size_t>& counts, std::size_t index) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(index), std::size_t{0});
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
}

/// Throws InternalError if what a member brings contradicts itself.
void check_contribution(const Contribution& own, std::size_t member, std::size_t num_members) {
  own.source.check_whole();
  own.destination.check_whole();
  base::check(!reduces(own.kind) || own.source.dtype != tensor::DType::Byte, "bytes have no sum");
  switch (own.kind) {
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather: {
      base::check(own.counts.size() == num_members, "there must be a count for each member: {} of {}",
                  own.counts.size(), num_members);
      const bool scatters = own.kind == CollectiveKind::ReduceScatter;
      const std::size_t whole = scatters ? own.source.count() : own.destination.count();
      const std::size_t part = scatters ? own.destination.count() : own.source.count();
      base::check(whole == sum_of(own.counts) && part == own.counts[member],
                  "buffers must have the size of the counts: whole {}, part {}, counts {} and {}", whole,
                  part, sum_of(own.counts), own.counts[member]);
      break;
    }
    case CollectiveKind::AllToAll:
      base::check(own.counts.size() == num_members && own.receive_counts.size() == num_members,
                  "there must be a count for each member: {} and {} of {}", own.counts.size(),
                  own.receive_counts.size(), num_members);
      base::check(
          own.source.count() == sum_of(own.counts) && own.destination.count() == sum_of(own.receive_counts),
          "buffers must have the size of the counts: sent {}, received {}", own.source.count(),
          own.destination.count());
      break;
    default:
      break;
  }
  base::check(own.source.dtype == own.destination.dtype, "source and destination must have one type");
}

/// Whether two members mean the same collective.
bool agree(const Contribution& one, const Contribution& other) {
  const bool is_exchange = one.kind == CollectiveKind::AllToAll;
  return one.kind == other.kind && one.tag == other.tag && one.root == other.root &&
         one.source.dtype == other.source.dtype && (is_exchange || one.counts == other.counts) &&
         // Where there are parts, only the sum of their sizes is the same everywhere.
         (is_exchange || !one.counts.empty() || one.source.bytes.size() == other.source.bytes.size());
}

/// In words, what members must have in common.
std::string describe(const Contribution& of) {
  std::string text(kind_name(of.kind));
  if (of.tag != 0) text += fmt::format(" {:#x}", of.tag);
  if (of.kind == CollectiveKind::Broadcast) text += fmt::format(" from member {}", of.root);
  if (of.kind == CollectiveKind::AllToAll) return text + fmt::format(" of {}", dtype_name(of.source.dtype));
  if (of.kind == CollectiveKind::ReduceScatter || of.kind == CollectiveKind::AllGather) {
    return text + fmt::format(" of {} {} in parts", fmt::join(of.counts, "+"), dtype_name(of.source.dtype));
  }
  if (of.kind == CollectiveKind::Barrier) return text;
  return text + fmt::format(" of {} {}", of.destination.count(), dtype_name(of.destination.dtype));
}

}  // namespace

bool Meeting::join(std::size_t member, Contribution contribution) {
  check_contribution(contribution, member, ranks_.size());
  base::check(!has_joined_[member], "rank {} joins a collective twice: it has two communicators of one group",
              ranks_[member].value);
  has_joined_[member] = true;
  contributions_[member] = std::move(contribution);
  if (++num_present_ < ranks_.size()) return false;
  disagreement_ = find_disagreement();
  if (disagreement_.empty()) divide();
  return true;
}

std::string Meeting::find_disagreement() const {
  for (std::size_t i = 1; i < contributions_.size(); ++i) {
    if (agree(contributions_.front(), contributions_[i])) continue;
    return fmt::format("ranks disagree on a collective: rank {} has {}, rank {} has {}", ranks_.front().value,
                       describe(contributions_.front()), ranks_[i].value, describe(contributions_[i]));
  }
  if (contributions_.front().kind != CollectiveKind::AllToAll) return {};
  for (std::size_t from = 0; from < contributions_.size(); ++from) {
    for (std::size_t to = 0; to < contributions_.size(); ++to) {
      const std::size_t sent = contributions_[from].counts[to];
      const std::size_t expected = contributions_[to].receive_counts[from];
      if (sent != expected) {
        return fmt::format(
            "ranks disagree on a collective: rank {} sends {} elements to rank {}, which "
            "expects {}",
            ranks_[from].value, sent, ranks_[to].value, expected);
      }
    }
  }
  return {};
}

void Meeting::divide() {
  const Contribution& first = contributions_.front();
  switch (first.kind) {
    case CollectiveKind::Barrier:
      return;
    case CollectiveKind::AllToAll:
      num_elements_ = ranks_.size() * ranks_.size();
      break;
    case CollectiveKind::ReduceScatter:
      num_elements_ = first.source.count();
      break;
    default:
      num_elements_ = first.destination.count();
  }
  if (first.kind != CollectiveKind::AllToAll) {
    elements_per_task_ = kTaskBytes / tensor::size_of(first.source.dtype);
  }
  num_tasks_ = (num_elements_ + elements_per_task_ - 1) / elements_per_task_;
}

void Meeting::work() {
  for (std::size_t task = next_task_++; task < num_tasks_; task = next_task_++) do_task(task);
}

void Meeting::do_task(std::size_t task) {
  const std::size_t first = task * elements_per_task_;
  const std::size_t count = std::min(elements_per_task_, num_elements_ - first);
  switch (contributions_.front().kind) {
    case CollectiveKind::AllReduce:
      return reduce_part(first, count);
    case CollectiveKind::ReduceScatter:
      return scatter_part(first, count);
    case CollectiveKind::AllGather:
      return gather_part(first, count);
    case CollectiveKind::Broadcast:
      return broadcast_part(first, count);
    case CollectiveKind::AllToAll:
      return exchange_pair(task / ranks_.size(), task % ranks_.size());
    case CollectiveKind::Barrier:
      return;
  }
}

template <typename Visit>
void Meeting::for_each_part(std::size_t first, std::size_t count, Visit visit) const {
  const std::vector<std::size_t>& counts = contributions_.front().counts;
  std::size_t part_begin = 0;
  for (std::size_t member = 0; member < counts.size(); ++member) {
    const std::size_t part_end = part_begin + counts[member];
    const std::size_t begin = std::max(first, part_begin);
    const std::size_t end = std::min(first + count, part_end);
    if (begin < end) visit(member, part_begin, begin, end - begin);
    part_begin = part_end;
  }
}

void Meeting::reduce_part(std::size_t first, std::size_t count) {
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> destinations;
  for (const Contribution& of : contributions_) {
    sources.push_back(of.source.part(first, count).bytes.data());
    destinations.push_back(of.destination.part(first, count).bytes.data());
  }
  const Contribution& of = contributions_.front();
  reduce(sources, destinations, of.source.part(first, count).bytes.size(), of.source.dtype);
}

void Meeting::scatter_part(std::size_t first, std::size_t count) {
  for_each_part(first, count,
                [this](std::size_t member, std::size_t part_begin, std::size_t begin, std::size_t num) {
                  std::vector<const std::byte*> sources;
                  for (const Contribution& of : contributions_) {
                    sources.push_back(of.source.part(begin, num).bytes.data());
                  }
                  const Contribution& own = contributions_[member];
                  const Elements destination = own.destination.part(begin - part_begin, num);
                  std::byte* const data = destination.bytes.data();
                  reduce(sources, {&data, 1}, destination.bytes.size(), destination.dtype);
                });
}

void Meeting::gather_part(std::size_t first, std::size_t count) {
  for_each_part(first, count,
                [this](std::size_t member, std::size_t part_begin, std::size_t begin, std::size_t num) {
                  const ConstElements source = contributions_[member].source.part(begin - part_begin, num);
                  for (const Contribution& of : contributions_) {
                    std::byte* const data = of.destination.part(begin, num).bytes.data();
                    if (data != source.bytes.data()) {
                      std::memcpy(data, source.bytes.data(), source.bytes.size());
                    }
                  }
                });
}

void Meeting::broadcast_part(std::size_t first, std::size_t count) {
  const std::size_t root = contributions_.front().root;
  const ConstElements source = contributions_[root].source.part(first, count);
  for (std::size_t member = 0; member < contributions_.size(); ++member) {
    if (member == root) continue;
    std::memcpy(contributions_[member].destination.part(first, count).bytes.data(), source.bytes.data(),
                source.bytes.size());
  }
}

void Meeting::exchange_pair(std::size_t from, std::size_t to) {
  const Contribution& sender = contributions_[from];
  const Contribution& receiver = contributions_[to];
  const ConstElements source = sender.source.part(begin_of(sender.counts, to), sender.counts[to]);
  if (source.bytes.empty()) return;
  std::byte* const data =
      receiver.destination.part(begin_of(receiver.receive_counts, from), sender.counts[to]).bytes.data();
  std::memcpy(data, source.bytes.data(), source.bytes.size());
}

}  // namespace plenum::comm::local
