#include "plenum/data/batches/sequence_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::data {
namespace {

/// In front of a sequence's tokens.
struct Head {
  std::uint32_t first_segment = 0;  ///< tokens of it
  std::uint32_t is_random_next = 0;
};

template <typename Value>
Value load(const std::vector<std::byte>& bytes, std::size_t place) {
  Value value;
  std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

template <typename Value>
void append_value(const Value& value, std::vector<std::byte>& bytes) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

}  // namespace

void ArrivedSequences::append(std::uint64_t id, std::vector<TokenId>& tokens,
                              std::vector<std::uint8_t>& segments) const {
  const auto found = places_.find(id);
  if (found == places_.end()) return own_.append(id, tokens, segments);
  const auto head = load<Head>(bytes_, found->second);
  const auto length = static_cast<std::size_t>(own_.length(id));
  std::size_t place = found->second + sizeof(Head);
  for (std::size_t i = 0; i < length; ++i, place += data::bytes_of(width_)) {
    tokens.push_back(width_ == TokenWidth::Two ? TokenId{load<std::uint16_t>(bytes_, place)}
                                               : load<TokenId>(bytes_, place));
    segments.push_back(i < head.first_segment ? 0 : 1);
  }
}

bool ArrivedSequences::is_random_next(std::uint64_t id) const {
  const auto found = places_.find(id);
  if (found == places_.end()) return own_.is_random_next(id);
  return load<Head>(bytes_, found->second).is_random_next != 0;
}

SequenceExchange::SequenceExchange(const SequenceSource& own, const std::vector<bool>& here,
                                   std::unique_ptr<comm::Communicator> ranks, std::size_t ranks_per_replica)
    : own_(own),
      ranks_(std::move(ranks)),
      ranks_per_replica_(ranks_per_replica),
      holders_(here, *ranks_),
      width_(token_width_for(own.vocabulary().size)) {}

template <typename Visit>
void SequenceExchange::for_each_lacked(const StepArrangement& arrangement, std::size_t rank,
                                       Visit visit) const {
  for (const MicroBatchPlan& plan : arrangement.micro_batches[rank / ranks_per_replica_]) {
    for (const PlacedSequence& sequence : plan.sequences) {
      if (!holders_.has(rank, sequence.id)) visit(sequence, holders_.sender_of(sequence.id, rank));
    }
  }
}

std::size_t SequenceExchange::bytes_of(std::int64_t length) const {
  return sizeof(Head) + static_cast<std::size_t>(length) * data::bytes_of(width_);
}

void SequenceExchange::append_bytes(const PlacedSequence& sequence, std::vector<std::byte>& bytes) {
  tokens_.clear();
  segments_.clear();
  own_.append(sequence.id, tokens_, segments_);
  base::check(std::cmp_equal(tokens_.size(), sequence.length),
              "a sequence has {} tokens where {} were planned", tokens_.size(), sequence.length);
  append_value(Head{.first_segment = static_cast<std::uint32_t>(std::ranges::count(segments_, 0)),
                    .is_random_next = own_.has_next_sentence() && own_.is_random_next(sequence.id) ? 1U : 0U},
               bytes);
  for (const TokenId token : tokens_) {
    if (width_ == TokenWidth::Two) {
      append_value(static_cast<std::uint16_t>(token), bytes);
    } else {
      append_value(token, bytes);
    }
  }
}

ArrivedSequences SequenceExchange::bring(const StepArrangement& arrangement) {
  const std::size_t own_rank = ranks_->index();
  std::vector<std::size_t> send_counts(ranks_->size());
  std::vector<std::size_t> receive_counts(ranks_->size());
  std::vector<std::vector<PlacedSequence>> arriving(ranks_->size());  // by sender
  bool is_needed = false;
  outgoing_.clear();
  for (std::size_t rank = 0; rank < ranks_->size(); ++rank) {
    const std::size_t begin = outgoing_.size();
    for_each_lacked(arrangement, rank, [&](const PlacedSequence& sequence, std::size_t sender) {
      is_needed = true;
      if (sender == own_rank) append_bytes(sequence, outgoing_);
      if (rank == own_rank) arriving[sender].push_back(sequence);
    });
    send_counts[rank] = outgoing_.size() - begin;
  }
  ArrivedSequences arrived(own_, width_);
  if (!is_needed) return arrived;
  std::size_t place = 0;
  for (std::size_t sender = 0; sender < arriving.size(); ++sender) {
    const std::size_t begin = place;
    for (const PlacedSequence& sequence : arriving[sender]) {
      arrived.places_.emplace(sequence.id, place);
      place += bytes_of(sequence.length);
    }
    receive_counts[sender] = place - begin;
  }
  arrived.bytes_.resize(place);
  ranks_
      ->start_all_to_all({outgoing_, tensor::DType::Byte}, send_counts, {arrived.bytes_, tensor::DType::Byte},
                         receive_counts, arrangement.step)
      .wait();
  num_arrived_bytes_ += place;
  return arrived;
}

}  // namespace plenum::data
