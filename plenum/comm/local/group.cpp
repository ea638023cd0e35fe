#include "plenum/comm/local/group.h"

#include <chrono>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::comm::local {
namespace {

/// What it costs to sleep and to be woken; not more, since the thread waited for may want this core.
constexpr std::chrono::microseconds kSpin{5};

/// Why work was not done; empty if it was. One member's trouble is that of all: none has the whole result.
std::string error_of_work(Meeting& meeting) {
  try {
    meeting.work();
    return {};
  } catch (const std::bad_alloc&) {
    return "out of memory";  // short enough to need none
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

Group::Group(std::shared_ptr<const AbortState> abort, std::vector<Rank> ranks)
    : abort_(std::move(abort)),
      ranks_(std::move(ranks)),
      may_spin_(ranks_.size() <= std::thread::hardware_concurrency()),
      queued_(*abort_, ranks_) {
  for (const Rank rank : ranks_) inboxes_.emplace_back(*abort_, rank);
}

std::shared_ptr<PendingMeeting> Group::join(std::uint64_t sequence, std::size_t member,
                                            Contribution contribution) {
  abort_->throw_if_aborted();
  const std::lock_guard lock(mutex_);
  std::shared_ptr<PendingMeeting>& place = open_[sequence];
  if (!place) place = std::make_shared<PendingMeeting>(ranks_);
  std::shared_ptr<PendingMeeting> pending = place;
  if (!pending->meeting.join(member, std::move(contribution))) return pending;
  open_.erase(sequence);
  pending->error = pending->meeting.disagreement();
  pending->is_complete = true;
  pending->is_finished = !pending->meeting.has_tasks();
  changed_.notify_all();
  return pending;
}

bool Group::advance(PendingMeeting& pending, std::unique_lock<std::mutex>& lock) {
  if (pending.is_finished) return true;
  // After an abort nobody begins to touch buffers, and nobody leaves while another still does.
  if (abort_->is_aborted()) return pending.num_working == 0;
  if (!pending.is_complete || !pending.meeting.has_tasks()) return false;
  ++pending.num_working;
  lock.unlock();
  std::string error = error_of_work(pending.meeting);
  lock.lock();
  if (pending.error.empty()) pending.error = std::move(error);
  if (--pending.num_working == 0) {
    pending.is_finished = true;
    changed_.notify_all();
  }
  return pending.is_finished;
}

void Group::conclude(const PendingMeeting& pending) const {
  if (!pending.is_finished) abort_->throw_if_aborted();
  if (!pending.error.empty()) throw base::InternalError(pending.error);
}

bool Group::spin(const PendingMeeting& pending, std::unique_lock<std::mutex>& lock) const {
  if (!may_spin_) return false;
  const bool was_complete = pending.is_complete;
  const bool was_aborted = abort_->is_aborted();
  const auto has_changed = [&] {
    return pending.is_finished || pending.is_complete != was_complete || abort_->is_aborted() != was_aborted;
  };
  lock.unlock();
  const auto begin = std::chrono::steady_clock::now();
  bool is_changed = has_changed();
  while (!is_changed && std::chrono::steady_clock::now() - begin < kSpin) is_changed = has_changed();
  lock.lock();
  return is_changed || has_changed();
}

void Group::wait(PendingMeeting& pending) {
  std::unique_lock lock(mutex_);
  while (!advance(pending, lock)) {
    if (!spin(pending, lock)) changed_.wait(lock);
  }
  conclude(pending);
}

bool Group::test(PendingMeeting& pending) {
  std::unique_lock lock(mutex_);
  if (!advance(pending, lock)) return false;
  conclude(pending);
  return true;
}

bool Group::is_complete(const PendingMeeting& pending) {
  const std::lock_guard lock(mutex_);
  return pending.is_complete;
}

void Group::wake() {
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  for (Inbox& inbox : inboxes_) inbox.wake();
  queued_.wake();
}

}  // namespace plenum::comm::local
