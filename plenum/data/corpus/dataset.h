#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plenum/base/progress.h"
#include "plenum/data/corpus/dataset_description.h"
#include "plenum/data/corpus/indexed_tokens.h"
#include "plenum/data/corpus/sequence_index.h"
#include "plenum/data/corpus/split.h"

namespace plenum::data {

/// A prepared dataset, mapped and read-only; any number of threads may read it. Sequences of a split are
/// numbered from 0 in order of increasing length, so those of one length are a range that the histogram
/// gives.
class Dataset {
 public:
  /// Opens `directory`. Throws UserError naming the file that is missing, of the wrong size or another
  /// version.
  explicit Dataset(const std::string& directory);

  const std::string& directory() const { return directory_; }
  const DatasetDescription& description() const { return description_; }
  std::int64_t max_length() const { return description_.max_length; }
  const packing::LengthHistogram& histogram(Split split) const { return description_[split].histogram; }

  std::uint64_t num_sequences(Split split) const { return parts_[index_of(split)].sequences.size(); }
  /// In tokens, special tokens included.
  std::int64_t length(Split split, std::uint64_t id) const;
  /// Throws UserError naming the file when the record points outside the token file.
  SequenceRecord record(Split split, std::uint64_t id) const;

  /// Appends the sequence's tokens with [CLS] and [SEP] to `tokens`, and as many segment numbers (0 for
  /// [CLS] A [SEP], 1 for B [SEP]) to `segments`.
  void append_sequence(Split split, std::uint64_t id, std::vector<TokenId>& tokens,
                       std::vector<std::uint8_t>& segments) const;

  /// Throws UserError naming the file if its checksum is not the one that was written.
  void verify_file(std::string_view name) const;
  /// Reads everything: checksums of all files, then range and order of every record. Throws UserError naming
  /// the first file that is not as it was written.
  void verify(base::Progress& progress) const;

 private:
  struct Part {
    IndexedTokens tokens;
    SequenceIndex sequences;
  };

  Part open_part(Split split) const;
  [[noreturn]] void fail_sequences(Split split, std::string_view what) const;
  std::string path_of(std::string_view name) const;

  std::string directory_;
  DatasetDescription description_;
  std::array<Part, 2> parts_;
};

}  // namespace plenum::data
