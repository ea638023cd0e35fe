#include "plenum/data/batches/sequence_source.h"

#include "plenum/base/check.h"

namespace plenum::data {

void require_fit(const SequenceSource& sequences, const describe::ModelConfig& model) {
  base::require(sequences.vocabulary().size <= model.vocabulary,
                "{} has a vocabulary of {} tokens, the model one of {}; prepare the text with the model's "
                "tokenizer, or take another model",
                sequences.name(), sequences.vocabulary().size, model.vocabulary);
  base::require(sequences.max_length() <= model.max_positions,
                "{} has sequences of up to {} tokens, the model {} positions; prepare the text with "
                "--max-length {}",
                sequences.name(), sequences.max_length(), model.max_positions, model.max_positions);
  base::require(
      !sequences.has_next_sentence() || model.num_segments >= 2,
      "{} has pairs of two segments, but the model knows one; prepare the text with --objective mlm",
      sequences.name());
}

}  // namespace plenum::data
