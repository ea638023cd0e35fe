#include "plenum/comm/local/queued_exchange.h"

#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"

namespace plenum::comm::local {
namespace {

std::unique_ptr<tensor::QueueEvent> record(const tensor::WorkQueue& queue) {
  std::unique_ptr<tensor::QueueEvent> event = queue.make_event(tensor::WorkQueue::Timed::No);
  queue.record(*event);
  return event;
}

/// A member's part of a collective: whatever it writes, no other member touches.
class PartOfMeeting {
 public:
  PartOfMeeting(std::span<const Contribution> contributions, std::size_t member,
                const tensor::WorkQueue& queue)
      : all_(contributions), own_(contributions[member]), member_(member), queue_(queue) {}

  void put() const {
    switch (own_.shape.kind) {
      case CollectiveKind::AllReduce:
        return reduce();
      case CollectiveKind::ReduceScatter:
        return scatter();
      case CollectiveKind::AllGather:
        return gather();
      case CollectiveKind::Broadcast:
        if (member_ != own_.shape.root) return;
        for (const Contribution& other : all_) copy(own_.source, other.destination);
        return;
      case CollectiveKind::AllToAll:
        return exchange();
      case CollectiveKind::Barrier:
        return;
    }
  }

 private:
  /// Each sums a slice for all, in the order of the members.
  void reduce() const {
    const std::size_t count = own_.destination.count();
    const std::size_t first = count * member_ / all_.size();
    const std::size_t end = count * (member_ + 1) / all_.size();
    std::vector<std::byte*> destinations;
    for (const Contribution& of : all_)
      destinations.push_back(of.destination.part(first, end - first).bytes.data());
    sum(first, end - first, destinations);
  }

  void scatter() const {
    const std::vector<std::size_t>& counts = own_.shape.counts;
    const std::vector<std::byte*> destination{own_.destination.bytes.data()};
    sum(begin_of(counts, member_), counts[member_], destination);
  }

  void sum(std::size_t first, std::size_t count, std::span<std::byte* const> destinations) const {
    if (count == 0) return;
    std::vector<const std::byte*> sources;
    for (const Contribution& of : all_) sources.push_back(of.source.part(first, count).bytes.data());
    queue_.sum(sources, destinations, count, own_.source.dtype);
  }

  void gather() const {
    const std::size_t first = begin_of(own_.shape.counts, member_);
    for (const Contribution& of : all_) copy(own_.source, of.destination.part(first, own_.source.count()));
  }

  void exchange() const {
    for (std::size_t to = 0; to < all_.size(); ++to) {
      const std::size_t count = own_.shape.counts[to];
      const Contribution& receiver = all_[to];
      copy(own_.source.part(begin_of(own_.shape.counts, to), count),
           receiver.destination.part(begin_of(receiver.shape.receive_counts, member_), count));
    }
  }

  void copy(ConstElements from, Elements to) const {
    if (!from.bytes.empty() && from.bytes.data() != to.bytes.data()) queue_.copy(from.bytes, to.bytes);
  }

  std::span<const Contribution> all_;
  const Contribution& own_;
  std::size_t member_;
  const tensor::WorkQueue& queue_;
};

}  // namespace

void QueuedExchange::await(base::FunctionRef<bool()> is_so, std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return is_so() || abort_.is_aborted(); });
  if (!is_so()) abort_.throw_if_aborted();
}

std::shared_ptr<QueuedMessage> QueuedExchange::send(std::size_t from, std::size_t to, Tag tag,
                                                    ConstElements elements, const tensor::WorkQueue& queue) {
  abort_.throw_if_aborted();
  const auto message =
      std::make_shared<QueuedMessage>(QueuedMessage{.elements = elements, .is_ready = record(queue)});
  const std::lock_guard lock(mutex_);
  sent_[{from, to, tag}].push_back(message);
  changed_.notify_all();
  return message;
}

bool QueuedExchange::is_taken(const QueuedMessage& message) {
  const std::lock_guard lock(mutex_);
  if (message.is_copied == nullptr) abort_.throw_if_aborted();
  return message.is_copied != nullptr;
}

void QueuedExchange::await_taken(const QueuedMessage& message) {
  std::unique_lock lock(mutex_);
  await([&] { return message.is_copied != nullptr; }, lock);
}

std::shared_ptr<QueuedMessage> QueuedExchange::take(const Key& key) {
  const auto found = sent_.find(key);
  if (found == sent_.end()) return nullptr;
  std::shared_ptr<QueuedMessage> message = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) sent_.erase(found);
  return message;
}

void QueuedExchange::copy(QueuedMessage& message, const Key& key, Elements destination,
                          const tensor::WorkQueue& queue) {
  const auto [from, to, tag] = key;
  const ConstElements elements = message.elements;
  base::check(elements.dtype == destination.dtype && elements.bytes.size() == destination.bytes.size(),
              "message {:#x}: rank {} sends {} {}, rank {} expects {} {}", tag, ranks_[from].value,
              elements.count(), dtype_name(elements.dtype), ranks_[to].value, destination.count(),
              dtype_name(destination.dtype));
  queue.wait_for(*message.is_ready);
  if (!elements.bytes.empty()) queue.copy(elements.bytes, destination.bytes);
  std::unique_ptr<tensor::QueueEvent> is_copied = record(queue);
  const std::lock_guard lock(mutex_);
  message.is_copied = std::move(is_copied);
  changed_.notify_all();
}

bool QueuedExchange::try_receive(std::size_t from, std::size_t to, Tag tag, Elements destination,
                                 const tensor::WorkQueue& queue) {
  const Key key{from, to, tag};
  std::unique_lock lock(mutex_);
  const std::shared_ptr<QueuedMessage> message = take(key);
  if (!message) abort_.throw_if_aborted();
  lock.unlock();
  if (message) copy(*message, key, destination, queue);
  return message != nullptr;
}

void QueuedExchange::receive(std::size_t from, std::size_t to, Tag tag, Elements destination,
                             const tensor::WorkQueue& queue) {
  const Key key{from, to, tag};
  std::unique_lock lock(mutex_);
  await([&] { return sent_.contains(key); }, lock);
  const std::shared_ptr<QueuedMessage> message = take(key);
  lock.unlock();
  copy(*message, key, destination, queue);
}

std::shared_ptr<QueuedMeeting> QueuedExchange::join(std::uint64_t sequence, std::size_t member,
                                                    Contribution contribution,
                                                    const tensor::WorkQueue& queue) {
  abort_.throw_if_aborted();
  std::unique_ptr<tensor::QueueEvent> entry = record(queue);
  const std::lock_guard lock(mutex_);
  std::shared_ptr<QueuedMeeting>& place = open_[sequence];
  if (!place) place = std::make_shared<QueuedMeeting>(ranks_.size());
  const std::shared_ptr<QueuedMeeting> meeting = place;
  base::check(meeting->entries[member] == nullptr,
              "rank {} joins a collective twice: it has two communicators of one group",
              ranks_[member].value);
  meeting->contributions[member] = std::move(contribution);
  meeting->entries[member] = std::move(entry);
  if (++meeting->num_present < ranks_.size()) return meeting;
  std::vector<const CollectiveShape*> shapes;
  for (const Contribution& of : meeting->contributions) shapes.push_back(&of.shape);
  meeting->disagreement = find_disagreement(shapes, ranks_);
  open_.erase(sequence);
  changed_.notify_all();
  return meeting;
}

bool QueuedExchange::are_all_present(const QueuedMeeting& meeting) {
  const std::lock_guard lock(mutex_);
  if (meeting.num_present < ranks_.size()) abort_.throw_if_aborted();
  return meeting.num_present == ranks_.size();
}

void QueuedExchange::await_all_present(const QueuedMeeting& meeting) {
  std::unique_lock lock(mutex_);
  await([&] { return meeting.num_present == ranks_.size(); }, lock);
}

void QueuedExchange::work(QueuedMeeting& meeting, std::size_t member, const tensor::WorkQueue& queue) {
  if (!meeting.disagreement.empty()) throw base::InternalError(meeting.disagreement);
  for (std::size_t other = 0; other < ranks_.size(); ++other) {
    if (other != member) queue.wait_for(*meeting.entries[other]);
  }
  PartOfMeeting(meeting.contributions, member, queue).put();
  std::unique_ptr<tensor::QueueEvent> exit = record(queue);
  const std::lock_guard lock(mutex_);
  meeting.exits[member] = std::move(exit);
  ++meeting.num_done;
  changed_.notify_all();
}

bool QueuedExchange::are_all_done(const QueuedMeeting& meeting) {
  const std::lock_guard lock(mutex_);
  if (meeting.num_done < ranks_.size()) abort_.throw_if_aborted();
  return meeting.num_done == ranks_.size();
}

void QueuedExchange::await_all_done(const QueuedMeeting& meeting) {
  std::unique_lock lock(mutex_);
  await([&] { return meeting.num_done == ranks_.size(); }, lock);
}

void QueuedExchange::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace plenum::comm::local
