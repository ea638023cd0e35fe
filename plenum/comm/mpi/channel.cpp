#include "plenum/comm/mpi/channel.h"

#include <exception>
#include <utility>

namespace plenum::comm::mpi {

Channel::Channel(std::shared_ptr<WorldState> world, std::vector<Rank> ranks, std::size_t index, int context,
                 MPI_Comm library_group)
    : world_(std::move(world)),
      lines_{.world = world_.get(), .ranks = std::move(ranks), .index = index, .context = context},
      room_(lines_),
      messages_(lines_, Topic::Message, Topic::MessagePayload),
      invitations_(lines_, Topic::Invitation, Topic::InvitationPayload) {
  room_.library_group = library_group;
}

Channel::~Channel() {
  try {
    // Messages that nobody asked for may still be arriving in memory that goes with this.
    const Patience patience = world_->patience();
    while (messages_.is_arriving()) {
      if (!drive()) patience.pause();
    }
  } catch (const std::exception&) {
    // Nobody calls MPI any more.
  }
}

std::shared_ptr<Collective> Channel::start(Contribution contribution) {
  const std::lock_guard lock(mutex_);
  const MpiCall call(*world_);
  auto task = std::make_shared<Collective>(std::move(contribution));
  collectives_.push_back(task);
  drive_locked();
  return task;
}

std::shared_ptr<Task> Channel::send(std::size_t to, Tag tag, ConstElements elements) {
  const std::lock_guard lock(mutex_);
  const MpiCall call(*world_);
  return messages_.send(to, tag, elements);
}

std::shared_ptr<ReceiveTask> Channel::receive(std::size_t from, Tag tag, Elements destination) {
  const std::lock_guard lock(mutex_);
  const MpiCall call(*world_);
  return messages_.receive(from, tag, destination);
}

std::shared_ptr<Task> Channel::send_invitation(std::size_t to, Tag tag, ConstElements elements) {
  const std::lock_guard lock(mutex_);
  const MpiCall call(*world_);
  return invitations_.send(to, tag, elements);
}

std::shared_ptr<Task> Channel::receive_invitation(std::size_t from, Tag tag, Elements destination) {
  const std::lock_guard lock(mutex_);
  const MpiCall call(*world_);
  return invitations_.receive(from, tag, destination);
}

bool Channel::withdraw(ReceiveTask& receive) {
  const std::lock_guard lock(mutex_);
  if (receive.is_matched) return false;
  messages_.withdraw(receive);
  return true;
}

bool Channel::drive() {
  const std::lock_guard lock(mutex_);
  const MpiCall call(*world_);
  return drive_locked();
}

bool Channel::try_drive() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || (collectives_.empty() && !messages_.has_work() && !invitations_.has_work())) return false;
  const MpiCall call(*world_);
  return drive_locked();
}

bool Channel::drive_locked() {
  try {
    return move_on();
  } catch (const std::exception& error) {
    // Nothing that is under way can be relied upon.
    world_->abort_all(world_->rank(), error.what());
    throw;
  }
}

bool Channel::move_on() {
  bool has_moved = false;
  if (messages_.has_work()) has_moved |= messages_.drive();
  if (invitations_.has_work()) has_moved |= invitations_.drive();
  while (!collectives_.empty()) {
    Collective& first = *collectives_.front();
    has_moved |= first.advance(room_);
    if (!first.is_done()) break;
    collectives_.pop_front();
  }
  is_exchanging_ = !collectives_.empty() && collectives_.front()->have_all_come();
  return has_moved;
}

void Channel::wait(const Task& task) {
  try {
    Patience patience = world_->patience();
    while (!task.is_done()) {
      if (drive()) {
        patience.renew();
      } else if (!world_->drive_others(*this)) {
        patience.pause(is_exchanging_ ? Patience::Awaited::Elements : Patience::Awaited::Others);
      }
    }
  } catch (const Aborted&) {
    world_->await_silence();
    if (!task.is_done()) throw;
  }
  task.conclude();
}

}  // namespace plenum::comm::mpi
