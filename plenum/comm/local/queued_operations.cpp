#include "plenum/comm/local/queued_operations.h"

#include <utility>

namespace plenum::comm::local {
namespace {

class QueuedSend final : public Operation {
 public:
  QueuedSend(QueuedMember own, std::shared_ptr<QueuedMessage> message)
      : own_(std::move(own)), message_(std::move(message)) {}

  void wait() override {
    own_.exchange().await_taken(*message_);
    own_.queue->wait_for(*message_->is_copied);
  }
  bool test() override {
    if (!own_.exchange().is_taken(*message_)) return false;
    own_.queue->wait_for(*message_->is_copied);
    return true;
  }
  void abandon() noexcept override {
    own_.world->abort_all(own_.group->ranks()[own_.index], "it gave up a message that it had begun to send");
  }

 private:
  QueuedMember own_;
  std::shared_ptr<QueuedMessage> message_;
};

class QueuedReceive final : public Operation {
 public:
  QueuedReceive(QueuedMember own, std::size_t from, Tag tag, Elements elements)
      : own_(std::move(own)), from_(from), tag_(tag), elements_(elements) {}

  void wait() override { own_.exchange().receive(from_, own_.index, tag_, elements_, *own_.queue); }
  bool test() override {
    return own_.exchange().try_receive(from_, own_.index, tag_, elements_, *own_.queue);
  }
  void abandon() noexcept override {}  // nothing was begun

 private:
  QueuedMember own_;
  std::size_t from_;
  Tag tag_;
  Elements elements_;
};

class QueuedCollective final : public Operation {
 public:
  QueuedCollective(QueuedMember own, std::shared_ptr<QueuedMeeting> meeting)
      : own_(std::move(own)), meeting_(std::move(meeting)) {}

  void wait() override {
    own_.exchange().await_all_present(*meeting_);
    work();
    own_.exchange().await_all_done(*meeting_);
    leave();
  }
  bool test() override {
    if (!own_.exchange().are_all_present(*meeting_)) return false;
    work();
    if (!own_.exchange().are_all_done(*meeting_)) return false;
    leave();
    return true;
  }
  void abandon() noexcept override {
    own_.world->abort_all(own_.group->ranks()[own_.index], "it left a collective that it had begun");
  }

 private:
  void work() {
    if (std::exchange(has_worked_, true)) return;
    own_.exchange().work(*meeting_, own_.index, *own_.queue);
  }
  void leave() const {
    for (std::size_t other = 0; other < meeting_->exits.size(); ++other) {
      if (other != own_.index) own_.queue->wait_for(*meeting_->exits[other]);
    }
  }

  QueuedMember own_;
  std::shared_ptr<QueuedMeeting> meeting_;
  bool has_worked_ = false;
};

}  // namespace

Completion start_queued_send(const QueuedMember& own, std::size_t to, Tag tag, ConstElements elements) {
  return Completion(
      std::make_unique<QueuedSend>(own, own.exchange().send(own.index, to, tag, elements, *own.queue)));
}

Completion start_queued_receive(const QueuedMember& own, std::size_t from, Tag tag, Elements elements) {
  return Completion(std::make_unique<QueuedReceive>(own, from, tag, elements));
}

Completion start_queued_collective(const QueuedMember& own, std::uint64_t sequence,
                                   Contribution contribution) {
  return Completion(std::make_unique<QueuedCollective>(
      own, own.exchange().join(sequence, own.index, std::move(contribution), *own.queue)));
}

}  // namespace plenum::comm::local
