#include "plenum/comm/mpi/postbox.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "plenum/base/check.h"

namespace plenum::comm::mpi {
namespace {

/// Payloads up to this size travel with their head. Every transport sends so little at once, without waiting
/// for the receiver.
constexpr std::size_t kEnclosedBytes = 1024;

void copy_payload(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

struct Postbox::Head {
  Tag tag = 0;
  std::uint64_t num_bytes = 0;
  std::uint64_t dtype = 0;
};

struct Postbox::SendTask final : Task {
  std::vector<std::byte> head;
  Requests requests;
};

std::shared_ptr<Task> Postbox::send(std::size_t to, Tag tag, ConstElements elements) {
  auto task = std::make_shared<SendTask>();
  if (to == lines_.index) {
    deliver_to_self(tag, elements);
    task->finish();
    return task;
  }
  const Head head{
      .tag = tag, .num_bytes = elements.bytes.size(), .dtype = static_cast<std::uint64_t>(elements.dtype)};
  const bool is_enclosed = elements.bytes.size() <= kEnclosedBytes;
  task->head.resize(sizeof(head) + (is_enclosed ? elements.bytes.size() : 0));
  std::memcpy(task->head.data(), &head, sizeof(head));
  if (is_enclosed) copy_payload(elements.bytes, std::span(task->head).subspan(sizeof(head)));
  task->requests.send(task->head, lines_.line(to, head_));
  if (!is_enclosed) task->requests.send(elements.bytes, lines_.line(to, payload_));
  if (task->requests.test()) {
    task->finish();
  } else {
    sends_.push_back(task);
  }
  return task;
}

void Postbox::deliver_to_self(Tag tag, ConstElements elements) {
  const Key key{lines_.index, tag};
  if (const std::shared_ptr<ReceiveTask> receive = take_posted(key)) {
    const std::exception_ptr error = misfit(*receive, elements.dtype, elements.bytes.size());
    if (!error) copy_payload(elements.bytes, receive->destination.bytes);
    return receive->finish(error);
  }
  auto kept = std::make_shared<Kept>();
  kept->bytes.assign(elements.bytes.begin(), elements.bytes.end());
  kept->dtype = elements.dtype;
  kept_[key].push_back(std::move(kept));
}

std::shared_ptr<ReceiveTask> Postbox::receive(std::size_t from, Tag tag, Elements destination) {
  auto task = std::make_shared<ReceiveTask>();
  task->destination = destination;
  task->from = from;
  task->tag = tag;
  const Key key{from, tag};
  const auto found = kept_.find(key);
  if (found == kept_.end()) {
    posted_[key].push_back(task);
    ++num_posted_[from];
    ++num_waiting_;
    return task;
  }
  const std::shared_ptr<Kept> kept = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) kept_.erase(found);
  task->is_matched = true;
  if (kept->is_whole) {
    hand_over(*task, *kept);
  } else {
    kept->claimant = task;
  }
  return task;
}

void Postbox::hand_over(ReceiveTask& receive, const Kept& kept) {
  const std::exception_ptr error = misfit(receive, kept.dtype, kept.bytes.size());
  if (!error) copy_payload(kept.bytes, receive.destination.bytes);
  receive.finish(error);
}

void Postbox::withdraw(ReceiveTask& receive) {
  const auto found = posted_.find({receive.from, receive.tag});
  std::erase_if(found->second,
                [&](const std::shared_ptr<ReceiveTask>& posted) { return posted.get() == &receive; });
  if (found->second.empty()) posted_.erase(found);
  --num_posted_[receive.from];
  --num_waiting_;
}

std::shared_ptr<ReceiveTask> Postbox::take_posted(const Key& key) {
  const auto found = posted_.find(key);
  if (found == posted_.end()) return nullptr;
  std::shared_ptr<ReceiveTask> receive = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) posted_.erase(found);
  --num_posted_[key.first];
  --num_waiting_;
  receive->is_matched = true;
  return receive;
}

std::exception_ptr Postbox::misfit(const ReceiveTask& receive, tensor::DType dtype,
                                   std::size_t num_bytes) const {
  const Elements expected = receive.destination;
  if (expected.dtype == dtype && expected.bytes.size() == num_bytes) return nullptr;
  return std::make_exception_ptr(base::InternalError(
      fmt::format("message {:#x}: rank {} sends {} {}, rank {} expects {} {}", receive.tag,
                  lines_.ranks[receive.from].value, num_bytes / tensor::size_of(dtype), dtype_name(dtype),
                  lines_.ranks[lines_.index].value, expected.count(), dtype_name(expected.dtype))));
}

bool Postbox::drive() {
  bool has_moved = false;
  for (std::size_t from = 0; num_waiting_ > 0 && from < num_posted_.size(); ++from) {
    if (from == lines_.index) continue;
    while (num_posted_[from] > 0 && read_head(from)) has_moved = true;
  }
  has_moved |= std::erase_if(arriving_, [this](Arriving& arriving) {
                 if (!arriving.requests.test()) return false;
                 settle(arriving);
                 return true;
               }) > 0;
  has_moved |= std::erase_if(sends_, [](const std::shared_ptr<SendTask>& task) {
                 if (!task->requests.test()) return false;
                 task->finish();
                 return true;
               }) > 0;
  return has_moved;
}

bool Postbox::read_head(std::size_t from) {
  const Line line = lines_.line(from, head_);
  int is_there = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  check_call(MPI_Improbe(line.peer, line.tag, line.communicator, &is_there, &message, &status),
             "look for messages");
  if (is_there == 0) return false;
  std::array<std::byte, sizeof(Head) + kEnclosedBytes> bytes;
  check_call(MPI_Mrecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, &message, &status), "receive");
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  Head head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  take(from, head, std::span(bytes).first(static_cast<std::size_t>(size)).subspan(sizeof(head)));
  return true;
}

void Postbox::take(std::size_t from, const Head& head, std::span<const std::byte> enclosed) {
  const Key key{from, head.tag};
  Arriving arriving{.receive = take_posted(key)};
  if (arriving.receive) {
    arriving.misfit = misfit(*arriving.receive, static_cast<tensor::DType>(head.dtype), head.num_bytes);
  }
  if (!arriving.receive || arriving.misfit) {
    arriving.kept = std::make_shared<Kept>();
    arriving.kept->dtype = static_cast<tensor::DType>(head.dtype);
    arriving.kept->bytes.resize(head.num_bytes);
    arriving.kept->is_whole = false;
  }
  if (!arriving.receive) kept_[key].push_back(arriving.kept);
  const std::span<std::byte> place =
      arriving.kept ? std::span(arriving.kept->bytes) : arriving.receive->destination.bytes;
  if (head.num_bytes > kEnclosedBytes) {
    arriving.requests.receive(place, lines_.line(from, payload_));
    arriving_.push_back(std::move(arriving));
  } else {
    copy_payload(enclosed, place);
    settle(arriving);
  }
}

void Postbox::settle(const Arriving& arrived) {
  if (arrived.receive) return arrived.receive->finish(arrived.misfit);
  arrived.kept->is_whole = true;
  if (arrived.kept->claimant) hand_over(*arrived.kept->claimant, *arrived.kept);
}

}  // namespace plenum::comm::mpi
