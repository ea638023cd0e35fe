#include "plenum/comm/mpi/exchange.h"

#include <cstring>

namespace plenum::comm::mpi {
namespace {

/// A member's own part needs no message; it may already be where it belongs.
void copy(ConstElements from, Elements to) {
  if (!from.bytes.empty() && from.bytes.data() != to.bytes.data()) {
    std::memcpy(to.bytes.data(), from.bytes.data(), from.bytes.size());
  }
}

}  // namespace

Exchange::Exchange(const GroupLines& lines, const Contribution& own) {
  switch (own.shape.kind) {
    case CollectiveKind::AllGather:
      gather(lines, own);
      break;
    case CollectiveKind::Broadcast:
      broadcast(lines, own);
      break;
    case CollectiveKind::AllToAll:
      exchange(lines, own);
      break;
    default:
      break;
  }
}

void Exchange::gather(const GroupLines& lines, const Contribution& own) {
  const auto part = [&](std::size_t member) {
    return own.destination.part(begin_of(own.shape.counts, member), own.shape.counts[member]);
  };
  for (std::size_t distance = 1; distance < lines.size(); ++distance) {
    const std::size_t member = lines.other(distance);
    requests_.receive(part(member).bytes, lines.line(member, Topic::Result));
  }
  for (std::size_t distance = 1; distance < lines.size(); ++distance) {
    requests_.send(own.source.bytes, lines.line(lines.other(distance), Topic::Result));
  }
  copy(own.source, part(lines.index));
}

void Exchange::broadcast(const GroupLines& lines, const Contribution& own) {
  if (lines.index != own.shape.root) {
    return requests_.receive(own.destination.bytes, lines.line(own.shape.root, Topic::Result));
  }
  for (std::size_t distance = 1; distance < lines.size(); ++distance) {
    requests_.send(own.source.bytes, lines.line(lines.other(distance), Topic::Result));
  }
}

void Exchange::exchange(const GroupLines& lines, const Contribution& own) {
  const auto sent = [&](std::size_t member) {
    return own.source.part(begin_of(own.shape.counts, member), own.shape.counts[member]);
  };
  const auto received = [&](std::size_t member) {
    return own.destination.part(begin_of(own.shape.receive_counts, member), own.shape.receive_counts[member]);
  };
  for (std::size_t distance = 1; distance < lines.size(); ++distance) {
    const std::size_t member = lines.other(distance);
    requests_.receive(received(member).bytes, lines.line(member, Topic::Result));
  }
  for (std::size_t distance = 1; distance < lines.size(); ++distance) {
    const std::size_t member = lines.other(distance);
    requests_.send(sent(member).bytes, lines.line(member, Topic::Result));
  }
  copy(sent(lines.index), received(lines.index));
}

}  // namespace plenum::comm::mpi
