#pragma once

#include "plenum/data/batches/sequence_source.h"
#include "plenum/data/corpus/dataset.h"

namespace plenum::data {

/// The vocabulary of a dataset. Throws UserError naming the file if it is not the one that the dataset was
/// made with.
Vocabulary read_vocabulary(const Dataset& dataset);

/// The sequences of one split of a dataset.
class DatasetSequences final : public SequenceSource {
 public:
  /// Borrows the dataset and reads its vocabulary, with the errors of that.
  DatasetSequences(const Dataset& dataset, Split split);

  const packing::LengthHistogram& histogram() const override { return dataset_.histogram(split_); }
  std::int64_t max_length() const override { return dataset_.max_length(); }
  const MaskingVocabulary& vocabulary() const override { return vocabulary_; }
  bool has_next_sentence() const override;
  std::int64_t length(std::uint64_t id) const override { return dataset_.length(split_, id); }
  void append(std::uint64_t id, std::vector<TokenId>& tokens,
              std::vector<std::uint8_t>& segments) const override;
  bool is_random_next(std::uint64_t id) const override;
  std::string name() const override;

 private:
  const Dataset& dataset_;
  Split split_;
  MaskingVocabulary vocabulary_;
};

}  // namespace plenum::data
