#include "plenum/comm/mpi/greeting.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "plenum/base/check.h"

namespace plenum::comm::mpi {
namespace {

/// Elements up to this size travel with the greeting.
constexpr std::size_t kEnclosedLineBytes = 2048;
/// MPI counts in int.
constexpr std::size_t kMostMessageBytes = std::numeric_limits<int>::max();

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
  std::size_t record_bytes() const { return sizeof(Head) + counts_bytes() + num_enclosed; }
};

Greeting::Greeting(const GroupLines& lines)
    : lines_(lines),
      most_bytes_(sizeof(Head) + 2 * lines.size() * sizeof(std::size_t) + kEnclosedLineBytes),
      records_(std::make_unique_for_overwrite<std::byte[]>(lines.size() * most_bytes_)),
      begins_(lines.size() + 1),
      rounds_(base::gather_rounds(lines.size())) {}

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

std::span<std::byte> Greeting::place_at(std::size_t distance, std::size_t num_records) const {
  return {records_.get() + distance * most_bytes_, std::min(num_records * most_bytes_, kMostMessageBytes)};
}

void Greeting::start(const Contribution& own) {
  write_own(own);
  begin_round();
}

void Greeting::write_own(const Contribution& own) {
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
  std::byte* end = write(records_.get(), std::as_bytes(std::span(&head, 1)));
  end = write(end, std::as_bytes(std::span(shape.counts)));
  end = write(end, std::as_bytes(std::span(shape.receive_counts)));
  end = write(end, elements);
  begins_[1] = static_cast<std::size_t>(end - records_.get());
  num_ended_ = 0;
}

bool Greeting::advance() {
  bool has_moved = false;
  while (!is_done() && requests_.test()) {
    end_round();
    begin_round();
    has_moved = true;
  }
  return has_moved;
}

void Greeting::begin_round() {
  if (is_done()) return;
  const base::GatherRound& round = rounds_[num_ended_];
  for (const auto& [distance, num_records] : round) {
    requests_.add(
        receive_piece(place_at(distance, num_records), lines_.line(lines_.other(distance), Topic::Greeting)));
  }
  for (const auto& [distance, num_records] : round) {
    const std::size_t num_bytes = begins_[num_records];
    base::check(num_bytes <= kMostMessageBytes, "what {} members tell each other must fit into a message: {}",
                lines_.size(), num_bytes);
    requests_.add(
        send_piece({records_.get(), num_bytes}, lines_.line(lines_.before(distance), Topic::Greeting)));
  }
}

void Greeting::end_round() {
  for (const auto& [distance, num_records] : rounds_[num_ended_]) {
    const std::byte* const arrived = place_at(distance, num_records).data();
    std::size_t num_bytes = 0;
    for (std::size_t i = 0; i < num_records; ++i) {
      num_bytes += head_at(arrived + num_bytes).record_bytes();
      begins_[distance + i + 1] = begins_[distance] + num_bytes;
    }
    std::memmove(records_.get() + begins_[distance], arrived, num_bytes);
  }
  ++num_ended_;
}

Greeting::Head Greeting::head_at(const std::byte* record) {
  Head head;
  std::memcpy(&head, record, sizeof(head));
  return head;
}

const std::byte* Greeting::record_of(std::size_t member) const {
  return records_.get() + begins_[lines_.distance_of(member)];
}

CollectiveShape Greeting::shape_of(std::size_t member) const {
  const std::byte* const record = record_of(member);
  const Head head = head_at(record);
  const std::byte* const counts = record + sizeof(head);
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
  const std::byte* const record = record_of(member);
  const Head head = head_at(record);
  return {record + sizeof(head) + head.counts_bytes(), head.num_enclosed};
}

}  // namespace plenum::comm::mpi
