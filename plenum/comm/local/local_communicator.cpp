#include "plenum/comm/local/local_communicator.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::comm::local {
namespace {

class CollectiveOperation final : public Operation {
 public:
  CollectiveOperation(std::shared_ptr<WorldState> world, std::shared_ptr<Group> group, Rank rank,
                      std::shared_ptr<PendingMeeting> pending)
      : world_(std::move(world)), group_(std::move(group)), rank_(rank), pending_(std::move(pending)) {}

  void wait() override { group_->wait(*pending_); }
  bool test() override { return group_->test(*pending_); }

  void abandon() noexcept override {
    if (!group_->is_complete(*pending_)) world_->abort_all(rank_, "it left a collective that it had begun");
    try {
      wait();  // for those at work on it
    } catch (const std::exception&) {
      // Whoever drops an operation does not ask how it ended.
    }
  }

 private:
  std::shared_ptr<WorldState> world_;
  std::shared_ptr<Group> group_;
  Rank rank_;
  std::shared_ptr<PendingMeeting> pending_;
};

class ReceiveOperation final : public Operation {
 public:
  ReceiveOperation(std::shared_ptr<Group> group, Inbox& inbox, std::shared_ptr<PostedReceive> posted)
      : group_(std::move(group)), inbox_(inbox), posted_(std::move(posted)) {}

  void wait() override { inbox_.wait(posted_); }
  bool test() override { return inbox_.test(posted_); }
  void abandon() noexcept override { inbox_.abandon(posted_); }

 private:
  std::shared_ptr<Group> group_;
  Inbox& inbox_;  ///< of the group
  std::shared_ptr<PostedReceive> posted_;
};

}  // namespace

Completion LocalCommunicator::start(Contribution contribution) {
  if (queue_ != nullptr) return start_queued_collective(queued(), next_sequence_++, std::move(contribution));
  std::shared_ptr<PendingMeeting> pending = group_->join(next_sequence_++, index_, std::move(contribution));
  return Completion(
      std::make_unique<CollectiveOperation>(world_, group_, rank_of(index_), std::move(pending)));
}

Completion LocalCommunicator::start_send(std::size_t to, Tag tag, ConstElements elements) {
  base::check(to < size(), "the receiver must be a member: {} of {}", to, size());
  elements.check_whole();
  if (queue_ != nullptr) return start_queued_send(queued(), to, tag, elements);
  group_->inbox(to).deliver(index_, rank_of(index_), tag, elements);
  return {};
}

Completion LocalCommunicator::start_receive(std::size_t from, Tag tag, Elements elements) {
  base::check(from < size(), "the sender must be a member: {} of {}", from, size());
  elements.check_whole();
  group_->abort_state().throw_if_aborted();
  if (queue_ != nullptr) return start_queued_receive(queued(), from, tag, elements);
  Inbox& inbox = group_->inbox(index_);
  std::shared_ptr<PostedReceive> posted = inbox.receive(from, rank_of(from), tag, elements);
  if (!posted) return {};
  return Completion(std::make_unique<ReceiveOperation>(group_, inbox, std::move(posted)));
}

std::unique_ptr<Communicator> LocalCommunicator::group(std::span<const std::size_t> members) {
  const std::vector<std::size_t> key(members.begin(), members.end());
  const auto own = std::find(key.begin(), key.end(), index_);
  base::check(own != key.end(), "only members create a group: rank {} is none", rank_of(index_).value);
  std::vector<Rank> ranks;
  for (const std::size_t member : members) ranks.push_back(rank_of(member));
  std::shared_ptr<Group> group = world_->group(group_.get(), key, num_created_[key]++, std::move(ranks));
  return std::make_unique<LocalCommunicator>(world_, std::move(group),
                                             static_cast<std::size_t>(own - key.begin()));
}

}  // namespace plenum::comm::local
