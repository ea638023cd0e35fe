#include "plenum/comm/local/meeting.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/comm/reduce.h"

namespace plenum::comm::local {
namespace {

/// Large enough to be worth a thread's while, small enough to divide well.
constexpr std::size_t kTaskBytes = 64 * 1024;

}  // namespace

bool Meeting::join(std::size_t member, Contribution contribution) {
  base::check(!has_joined_[member], "rank {} joins a collective twice: it has two communicators of one group",
              ranks_[member].value);
  has_joined_[member] = true;
  contributions_[member] = std::move(contribution);
  if (++num_present_ < ranks_.size()) return false;
  std::vector<const CollectiveShape*> shapes;
  for (const Contribution& of : contributions_) shapes.push_back(&of.shape);
  disagreement_ = find_disagreement(shapes, ranks_);
  if (disagreement_.empty()) divide();
  return true;
}

void Meeting::divide() {
  const Contribution& first = contributions_.front();
  switch (first.shape.kind) {
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
  if (first.shape.kind != CollectiveKind::AllToAll) {
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
  switch (contributions_.front().shape.kind) {
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
  const std::vector<std::size_t>& counts = contributions_.front().shape.counts;
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
  const std::size_t root = contributions_.front().shape.root;
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
  const ConstElements source = sender.source.part(begin_of(sender.shape.counts, to), sender.shape.counts[to]);
  if (source.bytes.empty()) return;
  std::byte* const data =
      receiver.destination.part(begin_of(receiver.shape.receive_counts, from), sender.shape.counts[to])
          .bytes.data();
  std::memcpy(data, source.bytes.data(), source.bytes.size());
}

}  // namespace plenum::comm::local
