#include "plenum/comm/mpi/whole_reduction.h"

#include <array>

#include "plenum/comm/reduce.h"

namespace plenum::comm::mpi {
namespace {

constexpr std::size_t kPairSize = 2;
/// Messages of up to 4 kB travel at once: two of them are there before one that is announced first.
constexpr std::size_t kMostEagerBytes = 2 * 4096;
/// Beyond, adding everything takes longer than another message does.
constexpr std::size_t kMostWholeBytes = 32 * 1024;

}  // namespace

bool WholeReduction::can_do(const CollectiveShape& shape, std::size_t num_members) {
  const std::size_t num_bytes = shape.count * tensor::size_of(shape.dtype);
  return shape.kind == CollectiveKind::AllReduce && num_members == kPairSize && num_bytes > kMostEagerBytes &&
         num_bytes <= kMostWholeBytes;
}

WholeReduction::WholeReduction(const GroupLines& lines, Staging& staging, const Contribution& own)
    : own_(own), index_(lines.index), other_(staging.pieces(kPairSize)) {
  const std::span<std::byte> place(staging.pieces(kPairSize), own.source.bytes.size());
  const std::size_t other = lines.other(1);
  requests_.receive(place, lines.line(other, Topic::Contribution));
  requests_.send(own.source.bytes, lines.line(other, Topic::Contribution));
}

bool WholeReduction::advance() {
  // The sum may overwrite what is sent.
  if (is_done_ || !requests_.test()) return false;
  std::array<const std::byte*, kPairSize> sources{};
  sources[index_] = own_.source.bytes.data();
  sources[1 - index_] = other_;
  std::byte* const sum = own_.destination.bytes.data();
  reduce(sources, {&sum, 1}, own_.destination.bytes.size(), own_.shape.dtype);
  is_done_ = true;
  return true;
}

}  // namespace plenum::comm::mpi
