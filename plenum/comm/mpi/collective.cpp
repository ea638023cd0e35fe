#include "plenum/comm/mpi/collective.h"

#include <cstring>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/comm/mpi/direct_reduction.h"
#include "plenum/comm/mpi/exchange.h"
#include "plenum/comm/mpi/library_reduction.h"
#include "plenum/comm/mpi/whole_reduction.h"
#include "plenum/comm/reduce.h"

namespace plenum::comm::mpi {
namespace {

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
}

void copy(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty() && from.data() != to.data()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

bool Collective::advance(CollectiveRoom& room) {
  if (transfer_) {
    const bool has_moved = transfer_->advance();
    if (transfer_->is_done()) finish();
    return has_moved;
  }
  const bool has_just_begun = !has_begun_;
  if (has_just_begun) {
    has_begun_ = true;
    room.greeting.start(own_);
  }
  const bool has_moved = room.greeting.advance();
  if (!room.greeting.is_done()) return has_just_begun || has_moved;
  have_all_come_ = true;
  const std::string disagreement = room.greeting.disagreement(own_.shape);
  if (disagreement.empty()) {
    begin_transfer(room);
  } else {
    finish(std::make_exception_ptr(base::InternalError(disagreement)));
  }
  return true;
}

void Collective::begin_transfer(CollectiveRoom& room) {
  if (room.lines.size() == 1) {
    copy(own_.source.bytes, own_.destination.bytes);
    return finish();
  }
  if (own_.shape.kind == CollectiveKind::Barrier) return finish();
  if (Greeting::encloses(own_.shape)) {
    finish_from_greetings(room);
    return finish();
  }
  transfer_ = make_transfer(room);
  transfer_->advance();
  if (transfer_->is_done()) finish();
}

void Collective::finish_from_greetings(const CollectiveRoom& room) {
  const std::size_t index = room.lines.index;
  const CollectiveShape& shape = own_.shape;
  if (shape.kind == CollectiveKind::Broadcast) {
    if (index != shape.root) copy(room.greeting.enclosed(shape.root), own_.destination.bytes);
    return;
  }
  std::vector<const std::byte*> sources;
  for (std::size_t member = 0; member < room.lines.size(); ++member) {
    const std::span<const std::byte> of =
        member == index ? own_.source.bytes : room.greeting.enclosed(member);
    sources.push_back(of.data());
    if (shape.kind == CollectiveKind::AllGather) {
      copy(of, own_.destination.part(begin_of(shape.counts, member), shape.counts[member]).bytes);
    }
  }
  if (shape.kind != CollectiveKind::AllReduce) return;
  std::byte* const sum = own_.destination.bytes.data();
  reduce(sources, {&sum, 1}, own_.destination.bytes.size(), shape.dtype);
}

std::unique_ptr<Transfer> Collective::make_transfer(CollectiveRoom& room) const {
  if (!reduces(own_.shape.kind)) return std::make_unique<Exchange>(room.lines, own_);
  if (room.library_group != MPI_COMM_NULL && LibraryReduction::can_do(own_.shape)) {
    return std::make_unique<LibraryReduction>(room.library_group, own_);
  }
  if (WholeReduction::can_do(own_.shape, room.lines.size()))
    return std::make_unique<WholeReduction>(room.lines, room.staging, own_);
  return std::make_unique<DirectReduction>(room.lines, room.staging, own_);
}

}  // namespace plenum::comm::mpi
