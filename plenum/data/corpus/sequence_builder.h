#pragma once

#include <cstdint>
#include <functional>

#include "plenum/base/philox.h"
#include "plenum/data/corpus/indexed_tokens.h"
#include "plenum/data/corpus/objective.h"
#include "plenum/data/corpus/sequence_record.h"
#include "plenum/data/corpus/split.h"

namespace plenum::data {

/// Where a sequence may end.
enum class CutRule { Sentence, Token };

/// How documents become sequences.
struct SequenceOptions {
  std::int64_t max_length = 512;  ///< with special tokens
  Objective objective = Objective::MaskedLanguageModel;
  CutRule cut = CutRule::Sentence;
  bool only_first = false;  ///< keep a document's first sequence alone
  double short_sequence_probability = 0.1;
  std::uint64_t seed = 0;
};

/// Tokens of documents that are in no sequence, by reason.
struct LostTokens {
  std::uint64_t behind_first_sequence = 0;  ///< SequenceOptions::only_first
  std::uint64_t pair_truncation = 0;        ///< next-sentence pairs that were too long
};

/// Cuts documents into sequences, each document by itself: what comes of it depends on the document, its
/// number and the seed alone.
///
/// Masked language model: whole sentences as long as they fit; a sentence longer than a sequence is cut into
/// full sequences and its rest goes on with the next sentences. Every token is in exactly one sequence.
///
/// With next-sentence prediction, as for the original BERT (Devlin et al. 2019, appendix A.2): sentences are
/// gathered up to a target length, which is random for some documents and else the longest; a random number
/// of them is A; B is the others or, in half of the cases and where there are none, sentences from a random
/// place of another document, and then the others are used again. A pair that is too long loses tokens at a
/// random end of its longer half.
class SequenceBuilder {
 public:
  using Sink = std::function<void(const SequenceRecord&)>;

  /// Borrows `tokens`. Throws UserError when pairs are asked for and there is just one document.
  SequenceBuilder(const IndexedTokens& tokens, const SequenceOptions& options, Split split);

  /// Hands the sequences of a document to `sink` and adds to `lost`.
  void build(std::uint64_t document, const Sink& sink, LostTokens& lost) const;

 private:
  class Draws;
  struct Segment;

  void build_sentences(std::uint64_t document, const Sink& sink, LostTokens& lost) const;
  void build_tokens(std::uint64_t document, const Sink& sink, LostTokens& lost) const;
  void build_pairs(std::uint64_t document, const Sink& sink, LostTokens& lost) const;
  Segment random_partner(std::uint64_t document, std::uint64_t target, Draws& draws) const;
  std::uint64_t end_of_document(std::uint64_t document) const;
  Segment segment(std::uint64_t first_sentence, std::uint64_t end_sentence) const;

  const IndexedTokens& tokens_;
  SequenceOptions options_;
  Split split_;
  base::RandomFunction random_;
};

/// Throws UserError if the documents of a split are too few for an objective: pairs need two, or none.
void require_documents(Objective objective, std::uint64_t num_documents, Split split);

}  // namespace plenum::data
