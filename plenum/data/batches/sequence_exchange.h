#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plenum/comm/communicator.h"
#include "plenum/data/batches/sequence_source.h"
#include "plenum/data/batches/shard_holders.h"
#include "plenum/data/batches/step_batches.h"
#include "plenum/data/corpus/token_width.h"

namespace plenum::data {

/// The sequences of a source, with those that came from other ranks for one step.
class ArrivedSequences final : public SequenceSource {
 public:
  const packing::LengthHistogram& histogram() const override { return own_.histogram(); }
  std::int64_t max_length() const override { return own_.max_length(); }
  const MaskingVocabulary& vocabulary() const override { return own_.vocabulary(); }
  bool has_next_sentence() const override { return own_.has_next_sentence(); }
  std::int64_t length(std::uint64_t id) const override { return own_.length(id); }
  void append(std::uint64_t id, std::vector<TokenId>& tokens,
              std::vector<std::uint8_t>& segments) const override;
  bool is_random_next(std::uint64_t id) const override;
  std::string name() const override { return own_.name(); }

 private:
  friend class SequenceExchange;
  /// Borrows the source.
  ArrivedSequences(const SequenceSource& own, TokenWidth width) : own_(own), width_(width) {}

  const SequenceSource& own_;
  TokenWidth width_;
  std::vector<std::byte> bytes_;                           ///< of those that came
  std::unordered_map<std::uint64_t, std::size_t> places_;  ///< in bytes_, by id
};

/// Brings each rank the sequences that it works on in a step and has not on its own disk, from ranks that
/// have them. What travels follows from the step's arrangement, which all ranks know, so nobody asks: one
/// all-to-all for a step, of tokens alone.
class SequenceExchange {
 public:
  /// Borrows the source, of which this rank has the shards `here`, by index. `ranks_per_replica` ranks that
  /// follow each other work on the same. Created by all ranks of the communicator at the same time. Throws
  /// UserError, in all of them, if no rank has some shard.
  SequenceExchange(const SequenceSource& own, const std::vector<bool>& here,
                   std::unique_ptr<comm::Communicator> ranks, std::size_t ranks_per_replica = 1);

  /// By all ranks, for the same steps in the same order. Waits for the others.
  ArrivedSequences bring(const StepArrangement& arrangement);

  /// That came to this rank so far.
  std::uint64_t num_arrived_bytes() const { return num_arrived_bytes_; }

 private:
  /// What one rank lacks for a step.
  template <typename Visit>
  void for_each_lacked(const StepArrangement& arrangement, std::size_t rank, Visit visit) const;
  std::size_t bytes_of(std::int64_t length) const;
  void append_bytes(const PlacedSequence& sequence, std::vector<std::byte>& bytes);

  const SequenceSource& own_;
  std::unique_ptr<comm::Communicator> ranks_;
  std::size_t ranks_per_replica_;
  ShardHolders holders_;
  TokenWidth width_;
  std::uint64_t num_arrived_bytes_ = 0;
  std::vector<std::byte> outgoing_;     ///< scratch
  std::vector<TokenId> tokens_;         ///< scratch
  std::vector<std::uint8_t> segments_;  ///< scratch
};

}  // namespace plenum::data
