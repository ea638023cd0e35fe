#pragma once

#include <cstdint>
#include <string_view>

#include "plenum/base/philox.h"
#include "plenum/data/corpus/split.h"

namespace plenum::data {

/// A hash of a document's sentences that can be computed in pieces: of sentence hashes h_i it is
/// sum h_i M^(n-1-i) modulo 2^64, so the hash of two pieces follows from those of the pieces.
class DocumentHash {
 public:
  DocumentHash() = default;
  /// Takes up a hash that value() and num_sentences() gave.
  DocumentHash(std::uint64_t value, std::uint64_t num_sentences)
      : value_(value), num_sentences_(num_sentences) {}

  void add_sentence(std::string_view text);
  void add_sentence_hash(std::uint64_t hash);
  /// Appends the sentences of `later`.
  void append(const DocumentHash& later);

  std::uint64_t value() const { return value_; }
  std::uint64_t num_sentences() const { return num_sentences_; }

  /// The document's identity: equal texts have equal ones, and different ones do up to 64-bit collisions.
  std::uint64_t identity() const;

 private:
  std::uint64_t value_ = 0;
  std::uint64_t num_sentences_ = 0;
};

/// Decides by a document's identity alone whether it is set aside, so that copies of a document fall on the
/// same side and other files in the input change nothing.
class HoldoutRule {
 public:
  HoldoutRule(std::uint64_t seed, double fraction)
      : random_(seed, base::Purpose::Holdout), fraction_(fraction) {}

  Split split_of(std::uint64_t document_identity) const;
  /// Whether any document can be set aside.
  bool sets_aside() const { return fraction_ > 0; }

 private:
  base::RandomFunction random_;
  double fraction_;
};

}  // namespace plenum::data
