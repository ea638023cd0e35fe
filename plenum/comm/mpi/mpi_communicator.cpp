#include "plenum/comm/mpi/mpi_communicator.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::comm::mpi {
namespace {

class ChannelOperation : public Operation {
 public:
  ChannelOperation(std::shared_ptr<Channel> channel, std::shared_ptr<Task> task)
      : channel_(std::move(channel)), task_(std::move(task)) {}

  void wait() override { channel_->wait(*task_); }

  bool test() override {
    try {
      if (!task_->is_done() && !channel_->drive()) channel_->world().drive_others(*channel_);
    } catch (const Aborted&) {
      channel_->world().await_silence();
      if (!task_->is_done()) throw;
    }
    if (!task_->is_done()) return false;
    task_->conclude();
    return true;
  }

  void abandon() noexcept override {
    try {
      if (test()) return;
      give_up();
    } catch (const std::exception&) {
      // Whoever drops an operation does not ask how it ended.
    }
  }

 protected:
  Channel& channel() { return *channel_; }
  /// Ends an operation that is not done.
  virtual void give_up() = 0;

  void abort_because(std::string_view reason) {
    channel_->world().abort_all(channel_->world().rank(), reason);
    channel_->world().await_silence();
  }

 private:
  std::shared_ptr<Channel> channel_;
  std::shared_ptr<Task> task_;
};

class CollectiveOperation final : public ChannelOperation {
 public:
  CollectiveOperation(std::shared_ptr<Channel> channel, std::shared_ptr<Collective> collective)
      : ChannelOperation(std::move(channel), collective), collective_(std::move(collective)) {}

 private:
  void give_up() override {
    if (collective_->have_all_come()) return wait();
    abort_because("it left a collective that it had begun");
  }

  std::shared_ptr<Collective> collective_;
};

class SendOperation final : public ChannelOperation {
 public:
  using ChannelOperation::ChannelOperation;

 private:
  void give_up() override { abort_because("it left a message that it had begun to send"); }
};

class ReceiveOperation final : public ChannelOperation {
 public:
  ReceiveOperation(std::shared_ptr<Channel> channel, std::shared_ptr<ReceiveTask> receive)
      : ChannelOperation(std::move(channel), receive), receive_(std::move(receive)) {}

 private:
  void give_up() override {
    if (!channel().withdraw(*receive_)) wait();  // its message is on its way
  }

  std::shared_ptr<ReceiveTask> receive_;
};

/// A name for a list of members; whoever has the same name is asked for the list.
Tag name_of(std::span<const std::size_t> members) {
  Tag name = 0xcbf29ce484222325;  // FNV-1a
  for (const std::size_t member : members) name = (name ^ member) * 0x100000001b3;
  return name;
}

/// For reductions by the library. All members call it; what it waits for is not ended by an abort.
MPI_Comm make_library_group(const WorldState& world, const std::vector<Rank>& ranks, int context) {
  if (world.reduction() != Reduction::Library) return MPI_COMM_NULL;
  std::vector<int> members;
  for (const Rank rank : ranks) members.push_back(static_cast<int>(rank.value));
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm communicator = MPI_COMM_NULL;
  check_call(MPI_Comm_group(world.all(), &all), "make a group");
  check_call(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &group), "make a group");
  check_call(MPI_Comm_create_group(world.all(), group, context, &communicator), "make a communicator");
  MPI_Group_free(&group);
  MPI_Group_free(&all);
  return communicator;
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(std::shared_ptr<WorldState> world, std::vector<Rank> ranks,
                                                std::size_t index, int context) {
  const MPI_Comm library_group = make_library_group(*world, ranks, context);
  auto channel = std::make_shared<Channel>(std::move(world), std::move(ranks), index, context, library_group);
  channel->world().add(channel);
  return std::make_unique<MpiCommunicator>(std::move(channel));
}

Completion MpiCommunicator::start(Contribution contribution) {
  std::shared_ptr<Collective> task = channel_->start(std::move(contribution));
  return Completion(std::make_unique<CollectiveOperation>(channel_, std::move(task)));
}

Completion MpiCommunicator::start_send(std::size_t to, Tag tag, ConstElements elements) {
  base::check(to < size(), "the receiver must be a member: {} of {}", to, size());
  elements.check_whole();
  std::shared_ptr<Task> task = channel_->send(to, tag, elements);
  if (task->is_done()) return {};
  return Completion(std::make_unique<SendOperation>(channel_, std::move(task)));
}

Completion MpiCommunicator::start_receive(std::size_t from, Tag tag, Elements elements) {
  base::check(from < size(), "the sender must be a member: {} of {}", from, size());
  elements.check_whole();
  std::shared_ptr<ReceiveTask> task = channel_->receive(from, tag, elements);
  return Completion(std::make_unique<ReceiveOperation>(channel_, std::move(task)));
}

int MpiCommunicator::agree_on_context(std::span<const std::size_t> members) {
  const Tag name = name_of(members);
  std::vector<std::int64_t> invitation(members.size() + 1);
  if (members.front() != index()) {
    channel_->wait(*channel_->receive_invitation(members.front(), name, elements_of(std::span(invitation))));
    base::check(std::equal(members.begin(), members.end(), invitation.begin() + 1,
                           [](std::size_t own, std::int64_t other) {
                             return own == static_cast<std::size_t>(other);
                           }),
                "members of a new group disagree on who belongs to it: {} members", members.size());
    return static_cast<int>(invitation.front());
  }
  invitation.front() = channel_->world().new_context();
  std::copy(members.begin(), members.end(), invitation.begin() + 1);
  std::vector<std::shared_ptr<Task>> sends;
  for (const std::size_t member : members.subspan(1)) {
    sends.push_back(channel_->send_invitation(member, name, elements_of(std::span(invitation))));
  }
  for (const std::shared_ptr<Task>& send : sends) channel_->wait(*send);
  return static_cast<int>(invitation.front());
}

std::unique_ptr<Communicator> MpiCommunicator::group(std::span<const std::size_t> members) {
  const auto own = std::find(members.begin(), members.end(), index());
  base::check(own != members.end(), "only members create a group: rank {} is none", rank_of(index()).value);
  std::vector<Rank> ranks;
  for (const std::size_t member : members) ranks.push_back(rank_of(member));
  const int context = agree_on_context(members);
  return make_communicator(channel_->shared_world(), std::move(ranks),
                           static_cast<std::size_t>(own - members.begin()), context);
}

}  // namespace plenum::comm::mpi
