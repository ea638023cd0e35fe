#include "plenum/comm/nccl/nccl_communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/tensor/work_queue.h"

namespace plenum::comm::nccl {
namespace {

/// Whoever issues is done at once, unless it waits for a rank that is gone.
constexpr std::chrono::seconds kPatience{1};

ncclDataType_t type_of(tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::Float32:
      return ncclFloat32;
    case tensor::DType::Float64:
      return ncclFloat64;
    case tensor::DType::BFloat16:
      return ncclBfloat16;
    case tensor::DType::Int32:
      return ncclInt32;
    case tensor::DType::Int64:
      return ncclInt64;
    case tensor::DType::Byte:
      return ncclUint8;
  }
  base::check(false, "NCCL does not know elements of {}", tensor::dtype_name(dtype));
  return ncclUint8;
}

bool are_equal(std::span<const std::size_t> counts) {
  return std::ranges::all_of(counts, [&](std::size_t count) { return count == counts.front(); });
}

/// Several calls that are one.
class Together {
 public:
  Together() { check_nccl(::ncclGroupStart(), "begin a group of calls"); }
  ~Together() {
    if (!is_ended_) ::ncclGroupEnd();
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;
  void end() {
    is_ended_ = true;
    check_nccl(::ncclGroupEnd(), "communicate");
  }

 private:
  bool is_ended_ = false;
};

/// What goes by way of the GPU and is to be copied to the host when it is there.
class StagedOperation final : public Operation {
 public:
  /// Borrows the staging until it is done.
  StagedOperation(std::shared_ptr<WorldState> world, HostStaging& staging, Elements destination)
      : world_(std::move(world)), staging_(staging), destination_(destination) {
    staging_.stream().record(is_done_);
  }
  ~StagedOperation() override { staging_.leave(); }

  void wait() override {
    wait_on_host(is_done_, [&] { return world_->abort_state().is_aborted(); });
    world_->abort_state().throw_if_aborted();
    finish();
  }
  bool test() override {
    world_->abort_state().throw_if_aborted();
    if (!is_done_.is_done()) return false;
    finish();
    return true;
  }
  void abandon() noexcept override { world_->abort_all(Rank{}, "an operation was given up"); }

 private:
  void finish() const {
    if (!destination_.bytes.empty())
      std::memcpy(destination_.bytes.data(), staging_.fetched(), destination_.bytes.size());
  }

  std::shared_ptr<WorldState> world_;
  HostStaging& staging_;
  Elements destination_;
  tensor::CudaEvent is_done_;
};

}  // namespace

NcclCommunicator::NcclCommunicator(std::shared_ptr<WorldState> world, std::vector<Rank> ranks,
                                   std::size_t index, const Id& id)
    : world_(std::move(world)), ranks_(std::move(ranks)), index_(index) {
  ncclUniqueId unique;
  std::memcpy(&unique, id.data(), sizeof(unique));
  check_nccl(::ncclCommInitRank(&handle_, static_cast<int>(ranks_.size()), unique, static_cast<int>(index_)),
             "connect the GPUs");
  world_->add(*this);
}

NcclCommunicator::~NcclCommunicator() {
  world_->remove(*this);
  if (!is_ended_) ::ncclCommDestroy(handle_);
}

void NcclCommunicator::end() {
  const std::unique_lock lock(mutex_, kPatience);
  if (is_ended_ || !lock.owns_lock()) return;
  is_ended_ = true;
  ::ncclCommAbort(handle_);
}

void NcclCommunicator::issue_into(const tensor::WorkQueue& queue) {
  queue_ = dynamic_cast<const tensor::CudaStream*>(&queue);
  base::check(queue_ != nullptr, "NCCL puts its work into streams of CUDA");
}

template <typename Work>
Completion NcclCommunicator::run(ConstElements source, Elements destination, Work work) {
  if (queue_ == nullptr) return run_staged(source, destination, work);
  const std::lock_guard lock(mutex_);
  world_->abort_state().throw_if_aborted();
  work(Place{source.bytes.data(), destination.bytes.data(), queue_->handle()});
  return {};
}

template <typename Work>
Completion NcclCommunicator::run_staged(ConstElements source, Elements destination, Work work) {
  const std::lock_guard lock(mutex_);
  world_->abort_state().throw_if_aborted();
  staging_.enter(source.bytes.size(), destination.bytes.size());
  staging_.bring(source.bytes.data(), source.bytes.size());
  work(Place{staging_.device_in(), staging_.device_out(), staging_.stream().handle()});
  staging_.fetch(destination.bytes.size());
  return Completion(std::make_unique<StagedOperation>(world_, staging_, destination));
}

Completion NcclCommunicator::start(Contribution contribution) {
  return run(contribution.source, contribution.destination,
             [&](const Place& place) { issue(contribution.shape, place); });
}

void NcclCommunicator::issue(const CollectiveShape& shape, const Place& place) {
  const ncclDataType_t type = type_of(shape.dtype);
  const char* const what = "communicate";
  switch (shape.kind) {
    case CollectiveKind::AllReduce:
      check_nccl(
          ::ncclAllReduce(place.source, place.destination, shape.count, type, ncclSum, handle_, place.stream),
          what);
      return;
    case CollectiveKind::ReduceScatter:
      return reduce_parts(shape, place);
    case CollectiveKind::AllGather:
      return gather_parts(shape, place);
    case CollectiveKind::Broadcast:
      check_nccl(::ncclBroadcast(place.source, place.destination, shape.count, type,
                                 static_cast<int>(shape.root), handle_, place.stream),
                 what);
      return;
    case CollectiveKind::AllToAll:
      return exchange_parts(shape, place);
    case CollectiveKind::Barrier: {
      check_nccl(
          ::ncclAllReduce(element_.data(), element_.data(), 1, ncclInt32, ncclSum, handle_, place.stream),
          what);
      return;
    }
  }
}

void NcclCommunicator::reduce_parts(const CollectiveShape& shape, const Place& place) {
  const ncclDataType_t type = type_of(shape.dtype);
  if (are_equal(shape.counts)) {
    check_nccl(::ncclReduceScatter(place.source, place.destination, shape.counts.front(), type, ncclSum,
                                   handle_, place.stream),
               "communicate");
    return;
  }
  Together together;
  for (std::size_t i = 0; i < shape.counts.size(); ++i) {
    const std::byte* const part = place.source + begin_of(shape.counts, i) * tensor::size_of(shape.dtype);
    if (shape.counts[i] == 0) continue;
    check_nccl(::ncclReduce(part, place.destination, shape.counts[i], type, ncclSum, static_cast<int>(i),
                            handle_, place.stream),
               "communicate");
  }
  together.end();
}

void NcclCommunicator::gather_parts(const CollectiveShape& shape, const Place& place) {
  const ncclDataType_t type = type_of(shape.dtype);
  if (are_equal(shape.counts)) {
    check_nccl(
        ::ncclAllGather(place.source, place.destination, shape.counts.front(), type, handle_, place.stream),
        "communicate");
    return;
  }
  Together together;
  for (std::size_t i = 0; i < shape.counts.size(); ++i) {
    std::byte* const part = place.destination + begin_of(shape.counts, i) * tensor::size_of(shape.dtype);
    if (shape.counts[i] == 0) continue;
    check_nccl(::ncclBroadcast(i == index_ ? place.source : part, part, shape.counts[i], type,
                               static_cast<int>(i), handle_, place.stream),
               "communicate");
  }
  together.end();
}

void NcclCommunicator::exchange_parts(const CollectiveShape& shape, const Place& place) {
  const ncclDataType_t type = type_of(shape.dtype);
  const std::size_t size = tensor::size_of(shape.dtype);
  Together together;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const auto peer = static_cast<int>(i);
    const std::byte* const out = place.source + begin_of(shape.counts, i) * size;
    std::byte* const in = place.destination + begin_of(shape.receive_counts, i) * size;
    if (shape.counts[i] > 0)
      check_nccl(::ncclSend(out, shape.counts[i], type, peer, handle_, place.stream), "communicate");
    if (shape.receive_counts[i] > 0)
      check_nccl(::ncclRecv(in, shape.receive_counts[i], type, peer, handle_, place.stream), "communicate");
  }
  together.end();
}

Completion NcclCommunicator::start_send(std::size_t to, Tag /*tag*/, ConstElements elements) {
  elements.check_whole();
  return run(elements, {}, [&](const Place& place) {
    if (elements.bytes.empty()) return;  // both ends know it
    check_nccl(::ncclSend(place.source, elements.count(), type_of(elements.dtype), static_cast<int>(to),
                          handle_, place.stream),
               "send");
  });
}

Completion NcclCommunicator::start_receive(std::size_t from, Tag /*tag*/, Elements elements) {
  elements.check_whole();
  return run({}, elements, [&](const Place& place) {
    if (elements.bytes.empty()) return;
    check_nccl(::ncclRecv(place.destination, elements.count(), type_of(elements.dtype),
                          static_cast<int>(from), handle_, place.stream),
               "receive");
  });
}

std::unique_ptr<Communicator> NcclCommunicator::group(std::span<const std::size_t> members) {
  const auto own = std::ranges::find(members, index_);
  base::check(own != members.end(), "who creates a group is a member of it");
  std::vector<Rank> ranks;
  for (const std::size_t member : members) ranks.push_back(ranks_[member]);
  // The first member makes the id and tells the others.
  Id id{};
  const Elements bytes{id, tensor::DType::Byte};
  if (own == members.begin()) {
    id = make_id();
    for (const std::size_t member : members.subspan(1)) {
      run_staged(bytes, {}, [&](const Place& place) {
        check_nccl(
            ::ncclSend(place.source, id.size(), ncclUint8, static_cast<int>(member), handle_, place.stream),
            "create a group");
      }).wait();
    }
  } else {
    run_staged({}, bytes, [&](const Place& place) {
      check_nccl(::ncclRecv(place.destination, id.size(), ncclUint8, static_cast<int>(members.front()),
                            handle_, place.stream),
                 "create a group");
    }).wait();
  }
  return std::make_unique<NcclCommunicator>(world_, std::move(ranks),
                                            static_cast<std::size_t>(own - members.begin()), id);
}

}  // namespace plenum::comm::nccl
