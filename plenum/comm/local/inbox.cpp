#include "plenum/comm/local/inbox.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "plenum/base/check.h"

namespace plenum::comm::local {
namespace {

void copy(ConstElements from, Elements to) {
  if (!from.bytes.empty()) std::memcpy(to.bytes.data(), from.bytes.data(), from.bytes.size());
}

}  // namespace

void Inbox::deliver(std::size_t from_member, Rank from, Tag tag, ConstElements elements) {
  abort_.throw_if_aborted();
  const Key key{from_member, tag};
  std::unique_lock lock(mutex_);
  std::shared_ptr<PostedReceive> posted = take_posted(key);
  if (!posted) {
    lock.unlock();
    Message message{{elements.bytes.begin(), elements.bytes.end()}, elements.dtype};
    lock.lock();
    posted = take_posted(key);
    if (!posted) {
      messages_[key].push_back(std::move(message));
      return;
    }
  }
  posted->error = misfit(from, tag, elements, posted->destination);
  fill(*posted, elements, lock);
}

std::shared_ptr<PostedReceive> Inbox::take_posted(const Key& key) {
  const auto found = posted_.find(key);
  if (found == posted_.end()) return nullptr;
  std::shared_ptr<PostedReceive> posted = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) posted_.erase(found);
  return posted;
}

void Inbox::fill(PostedReceive& posted, ConstElements elements, std::unique_lock<std::mutex>& lock) {
  posted.state = PostedReceive::State::Copying;
  if (posted.error.empty()) {
    lock.unlock();
    copy(elements, posted.destination);
    lock.lock();
  }
  posted.state = PostedReceive::State::Done;
  changed_.notify_all();
}

std::shared_ptr<PostedReceive> Inbox::receive(std::size_t from_member, Rank from, Tag tag,
                                              Elements destination) {
  const Key key{from_member, tag};
  std::unique_lock lock(mutex_);
  const auto found = messages_.find(key);
  if (found == messages_.end()) {
    auto posted = std::make_shared<PostedReceive>();
    posted->destination = destination;
    posted->from_member = from_member;
    posted->tag = tag;
    posted_[key].push_back(posted);
    return posted;
  }
  const Message message = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) messages_.erase(found);
  lock.unlock();
  const std::string error = misfit(from, tag, message.elements(), destination);
  if (!error.empty()) throw base::InternalError(error);
  copy(message.elements(), destination);
  return nullptr;
}

std::string Inbox::misfit(Rank from, Tag tag, ConstElements elements, Elements destination) const {
  if (elements.dtype == destination.dtype && elements.bytes.size() == destination.bytes.size()) return {};
  return fmt::format("message {:#x}: rank {} sends {} {}, rank {} expects {} {}", tag, from.value,
                     elements.count(), dtype_name(elements.dtype), owner_.value, destination.count(),
                     dtype_name(destination.dtype));
}

void Inbox::wait(const std::shared_ptr<PostedReceive>& posted) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return posted->state == PostedReceive::State::Done ||
           (posted->state == PostedReceive::State::Waiting && abort_.is_aborted());
  });
  if (posted->state == PostedReceive::State::Waiting) {
    withdraw(posted);
    abort_.throw_if_aborted();
  }
  if (!posted->error.empty()) throw base::InternalError(posted->error);
}

bool Inbox::test(const std::shared_ptr<PostedReceive>& posted) {
  {
    const std::lock_guard lock(mutex_);
    if (posted->state == PostedReceive::State::Copying) return false;
    if (posted->state == PostedReceive::State::Waiting && !abort_.is_aborted()) return false;
  }
  wait(posted);
  return true;
}

void Inbox::abandon(const std::shared_ptr<PostedReceive>& posted) {
  std::unique_lock lock(mutex_);
  if (posted->state == PostedReceive::State::Waiting) return withdraw(posted);
  changed_.wait(lock, [&] { return posted->state == PostedReceive::State::Done; });
}

void Inbox::withdraw(const std::shared_ptr<PostedReceive>& posted) {
  const auto found = posted_.find({posted->from_member, posted->tag});
  std::erase(found->second, posted);
  if (found->second.empty()) posted_.erase(found);
}

void Inbox::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace plenum::comm::local
