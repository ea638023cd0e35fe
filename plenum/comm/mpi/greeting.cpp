#include "plenum/comm/mpi/greeting.h"

#include <algorithm>
#include <cstring>

namespace plenum::comm::mpi {
namespace {

/// Elements up to this size travel with the greeting.
constexpr std::size_t kEnclosedLineBytes = 2048;

/// Writes behind what is there; returns the end.
std::byte* write(std::byte* to, std::span<const std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return to + bytes.size();
}

std::vector<std::size_t> read_counts(const std::byte* from, std::size_t num_counts) {
  std::vector<std::size_t> counts(num_counts);
  if (num_counts > 0) std::memcpy(counts.data(), from, num_counts * sizeof(std::size_t));
  return counts;
}

}  // namespace

struct Greeting::Head {
  CollectiveKind kind = CollectiveKind::Barrier;
  tensor::DType dtype = tensor::DType::Byte;
  std::uint32_t num_enclosed = 0;  ///< bytes
  Tag tag = 0;
  std::uint64_t root = 0;
  std::uint64_t count = 0;
  std::uint64_t num_counts = 0;
  std::uint64_t num_receive_counts = 0;

  std::size_t counts_bytes() const { return (num_counts + num_receive_counts) * sizeof(std::size_t); }
};

Greeting::Greeting(const GroupLines& lines)
    : lines_(lines),
      most_bytes_(sizeof(Head) + 2 * lines.size() * sizeof(std::size_t) + kEnclosedLineBytes),
      sent_(most_bytes_),
      received_(lines.size() * most_bytes_) {}

bool Greeting::encloses(const CollectiveShape& shape) {
  const std::size_t size = tensor::size_of(shape.dtype);
  switch (shape.kind) {
    case CollectiveKind::AllReduce:
    case CollectiveKind::Broadcast:
      return shape.count * size <= kEnclosedLineBytes;
    case CollectiveKind::AllGather:
      return std::all_of(shape.counts.begin(), shape.counts.end(),
                         [size](std::size_t count) { return count * size <= kEnclosedLineBytes; });
    default:
      return false;
  }
}

std::span<std::byte> Greeting::place_of(std::size_t member) {
  return std::span(received_).subspan(member * most_bytes_, most_bytes_);
}

void Greeting::start(const Contribution& own) {
  const CollectiveShape& shape = own.shape;
  const bool is_heard = shape.kind != CollectiveKind::Broadcast || shape.root == lines_.index;
  const std::span<const std::byte> elements =
      encloses(shape) && is_heard ? own.source.bytes : std::span<const std::byte>();
  const Head head{.kind = shape.kind,
                  .dtype = shape.dtype,
                  .num_enclosed = static_cast<std::uint32_t>(elements.size()),
                  .tag = shape.tag,
                  .root = shape.root,
                  .count = shape.count,
                  .num_counts = shape.counts.size(),
                  .num_receive_counts = shape.receive_counts.size()};
  std::byte* end = write(sent_.data(), std::as_bytes(std::span(&head, 1)));
  end = write(end, std::as_bytes(std::span(shape.counts)));
  end = write(end, std::as_bytes(std::span(shape.receive_counts)));
  end = write(end, elements);
  for (std::size_t distance = 1; distance < lines_.size(); ++distance) {
    const std::size_t member = lines_.other(distance);
    requests_.receive(place_of(member), lines_.line(member, Topic::Greeting));
  }
  for (std::size_t distance = 1; distance < lines_.size(); ++distance) {
    requests_.send({sent_.data(), end}, lines_.line(lines_.other(distance), Topic::Greeting));
  }
}

Greeting::Head Greeting::head_of(std::size_t member) const {
  Head head;
  std::memcpy(&head, received_.data() + member * most_bytes_, sizeof(head));
  return head;
}

CollectiveShape Greeting::shape_of(std::size_t member) const {
  const Head head = head_of(member);
  const std::byte* const counts = received_.data() + member * most_bytes_ + sizeof(head);
  return {
      .kind = head.kind,
      .dtype = head.dtype,
      .tag = head.tag,
      .root = head.root,
      .count = head.count,
      .counts = read_counts(counts, head.num_counts),
      .receive_counts = read_counts(counts + head.num_counts * sizeof(std::size_t), head.num_receive_counts)};
}

std::string Greeting::disagreement(const CollectiveShape& own) const {
  std::vector<CollectiveShape> others(lines_.size());
  std::vector<const CollectiveShape*> shapes(lines_.size(), &own);
  for (std::size_t member = 0; member < lines_.size(); ++member) {
    if (member == lines_.index) continue;
    others[member] = shape_of(member);
    shapes[member] = &others[member];
  }
  return find_disagreement(shapes, lines_.ranks);
}

std::span<const std::byte> Greeting::enclosed(std::size_t member) const {
  const Head head = head_of(member);
  return std::span(received_).subspan(member * most_bytes_ + sizeof(head) + head.counts_bytes(),
                                      head.num_enclosed);
}

}  // namespace plenum::comm::mpi
