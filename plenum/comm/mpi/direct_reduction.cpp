#include "plenum/comm/mpi/direct_reduction.h"

#include <algorithm>

#include "plenum/comm/reduce.h"

namespace plenum::comm::mpi {
namespace {

std::size_t ceil_div(std::size_t value, std::size_t divisor) {
  return (value + divisor - 1) / divisor;
}

/// Elements of a slice of an all-reduce: whole cache lines to every member, as evenly as can be.
std::size_t even_slice_end(std::size_t num_elements, std::size_t num_slices, std::size_t slice) {
  constexpr std::size_t kGrain = 16;
  const std::size_t num_grains = ceil_div(num_elements, kGrain);
  return std::min(num_elements, num_grains * (slice + 1) / num_slices * kGrain);
}

}  // namespace

DirectReduction::DirectReduction(const GroupLines& lines, Staging& staging, const Contribution& own)
    : lines_(lines),
      own_(own),
      gives_results_(own.shape.kind == CollectiveKind::AllReduce),
      piece_bytes_(Staging::piece_bytes(lines.size())),
      staging_(staging.pieces(lines.size())),
      slices_(lines.size()),
      requests_(kNumWays * kDepth * lines.size(), MPI_REQUEST_NULL),
      completed_(requests_.size()),
      sources_(lines.size()) {
  const std::size_t element_bytes = tensor::size_of(own.shape.dtype);
  const std::size_t num_others = lines.size() - 1;
  std::size_t begin = 0;
  for (std::size_t member = 0; member < lines.size(); ++member) {
    Slice& slice = slices_[member];
    const std::size_t end = gives_results_
                                ? even_slice_end(own.shape.count, lines.size(), member) * element_bytes
                                : begin + own.shape.counts[member] * element_bytes;
    slice.begin = begin;
    slice.num_bytes = end - begin;
    slice.num_pieces = ceil_div(slice.num_bytes, piece_bytes_);
    begin = end;
    const std::size_t num_messages = slice.num_pieces * (gives_results_ ? 2 : 1);
    num_open_ += member == lines.index ? num_messages * num_others + slice.num_pieces : num_messages;
  }
}

bool DirectReduction::are_free(Way way, std::size_t piece) const {
  for (std::size_t member = 0; member < lines_.size(); ++member) {
    if (!is_free(way, piece, member)) return false;
  }
  return true;
}

std::size_t DirectReduction::bytes_of(const Slice& slice, std::size_t piece) const {
  return std::min(piece_bytes_, slice.num_bytes - piece * piece_bytes_);
}

std::byte* DirectReduction::staged(std::size_t piece, std::size_t member) const {
  return staging_ + (piece % kDepth * lines_.size() + member) * piece_bytes_;
}

const std::byte* DirectReduction::source_of(const Slice& slice, std::size_t piece) const {
  return own_.source.bytes.data() + slice.begin + piece * piece_bytes_;
}

std::byte* DirectReduction::sum_of(const Slice& slice, std::size_t piece) const {
  return own_.destination.bytes.data() + (gives_results_ ? slice.begin : 0) + piece * piece_bytes_;
}

bool DirectReduction::advance() {
  bool has_moved = start_what_can();
  if (collect()) {
    has_moved = true;
    start_what_can();
  }
  return has_moved;
}

bool DirectReduction::start_what_can() {
  bool has_moved = ask_for_contributions();
  for (std::size_t distance = 1; distance < lines_.size(); ++distance) {
    has_moved |= exchange_with(lines_.other(distance));
  }
  return add_pieces() || has_moved;
}

bool DirectReduction::ask_for_contributions() {
  const Slice& slice = slices_[lines_.index];
  bool has_moved = false;
  for (; asked_ < slice.num_pieces && asked_ < added_ + kDepth; ++asked_) {
    for (std::size_t distance = 1; distance < lines_.size(); ++distance) {
      const std::size_t member = lines_.other(distance);
      const std::span<std::byte> place(staged(asked_, member), bytes_of(slice, asked_));
      requests_[slot(Way::ContributionIn, asked_, member)] =
          receive_piece(place, lines_.line(member, Topic::Contribution));
    }
    has_moved = true;
  }
  return has_moved;
}

bool DirectReduction::exchange_with(std::size_t member) {
  Slice& slice = slices_[member];
  bool has_moved = false;
  for (; gives_results_ && slice.results_in < slice.contributions_out; ++slice.results_in) {
    // The sum overwrites what was sent to its owner, so that must have left.
    const std::size_t piece = slice.results_in;
    const bool has_left =
        piece + kDepth < slice.contributions_out || is_free(Way::ContributionOut, piece, member);
    if (!has_left || !is_free(Way::ResultIn, piece, member)) break;
    requests_[slot(Way::ResultIn, piece, member)] =
        receive_piece({sum_of(slice, piece), bytes_of(slice, piece)}, lines_.line(member, Topic::Result));
    has_moved = true;
  }
  for (; slice.contributions_out < slice.num_pieces; ++slice.contributions_out) {
    const std::size_t piece = slice.contributions_out;
    if (!is_free(Way::ContributionOut, piece, member)) break;
    requests_[slot(Way::ContributionOut, piece, member)] = send_piece(
        {source_of(slice, piece), bytes_of(slice, piece)}, lines_.line(member, Topic::Contribution));
    has_moved = true;
  }
  return has_moved;
}

bool DirectReduction::add_pieces() {
  bool has_moved = false;
  while (added_ < asked_ && are_free(Way::ContributionIn, added_) && are_free(Way::ResultOut, added_)) {
    add(added_);
    ++added_;
    --num_open_;
    ask_for_contributions();
    has_moved = true;
  }
  return has_moved;
}

void DirectReduction::add(std::size_t piece) {
  const Slice& slice = slices_[lines_.index];
  const std::size_t num_bytes = bytes_of(slice, piece);
  for (std::size_t member = 0; member < lines_.size(); ++member) {
    sources_[member] = member == lines_.index ? source_of(slice, piece) : staged(piece, member);
  }
  std::byte* const sum = sum_of(slice, piece);
  reduce(sources_, {&sum, 1}, num_bytes, own_.shape.dtype);
  if (!gives_results_) return;
  for (std::size_t distance = 1; distance < lines_.size(); ++distance) {
    const std::size_t member = lines_.other(distance);
    requests_[slot(Way::ResultOut, piece, member)] =
        send_piece({sum, num_bytes}, lines_.line(member, Topic::Result));
  }
}

bool DirectReduction::collect() {
  int num_completed = 0;
  check_call(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &num_completed,
                          completed_.data(), MPI_STATUSES_IGNORE),
             "exchange slices");
  if (num_completed == MPI_UNDEFINED || num_completed == 0) return false;
  num_open_ -= static_cast<std::size_t>(num_completed);  // MPI has set their requests to null
  return true;
}

}  // namespace plenum::comm::mpi
