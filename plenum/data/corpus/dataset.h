#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/base/progress.h"
#include "plenum/data/corpus/dataset_description.h"
#include "plenum/data/corpus/indexed_tokens.h"
#include "plenum/data/corpus/sequence_index.h"
#include "plenum/data/corpus/split.h"
#include "plenum/packing/sequence_ids.h"

namespace plenum::data {

/// A prepared dataset, mapped and read-only; any number of threads may read it. Sequences of a split are
/// numbered from 0 in order of increasing length, so those of one length are a range that the histogram
/// gives.
///
/// Of a dataset in shards it may have some only: then the training sequences of the others cannot be read,
/// but numbers and lengths are those of the whole, and what is held out is all here.
class Dataset {
 public:
  /// Opens `directory`: a dataset, a shard of one, or some or all of the shards of one. Throws UserError
  /// naming the file that is missing, of the wrong size or another version, or a shard of another dataset.
  explicit Dataset(const std::string& directory);

  /// Where description, tokenizer and held-out data lie: that of the first shard, where there are shards.
  const std::string& directory() const { return directory_; }
  /// With the files and the shard of directory().
  const DatasetDescription& description() const { return description_; }
  std::int64_t max_length() const { return description_.max_length; }
  const packing::LengthHistogram& histogram(Split split) const { return description_[split].histogram; }

  std::uint64_t num_shards() const { return description_.shard.count; }
  bool has_shard(std::uint64_t index) const { return shards_[index].has_value(); }
  /// Whether all shards are here.
  bool is_whole() const;
  /// Whether a training sequence can be read.
  bool has(std::uint64_t id) const { return has_shard(id % num_shards()); }

  /// Of the whole dataset.
  std::uint64_t num_sequences(Split split) const { return ids_[index_of(split)].num_sequences(); }
  /// In tokens, special tokens included.
  std::int64_t length(Split split, std::uint64_t id) const;
  /// Of a sequence that can be read. Throws UserError naming the file when the record points outside the
  /// token file.
  SequenceRecord record(Split split, std::uint64_t id) const;

  /// Appends the sequence's tokens with [CLS] and [SEP] to `tokens`, and as many segment numbers (0 for
  /// [CLS] A [SEP], 1 for B [SEP]) to `segments`.
  void append_sequence(Split split, std::uint64_t id, std::vector<TokenId>& tokens,
                       std::vector<std::uint8_t>& segments) const;

  /// Of all files here.
  std::uint64_t num_bytes() const;
  /// Throws UserError naming the file of directory() if its checksum is not the one that was written.
  void verify_file(std::string_view name) const;
  /// As verify_file(), all files here.
  void verify_files(base::Progress& progress) const;
  /// Reads everything: checksums of all files, then range and length of every record. Throws UserError naming
  /// the first file that is not as it was written.
  void verify(base::Progress& progress) const;

 private:
  struct Part {
    std::string directory;
    std::vector<io::FileRecord> files;
    IndexedTokens tokens;
    SequenceIndex sequences;
  };

  Part open_part(const std::string& directory, const DatasetDescription& description, Split split) const;
  void add_shard(const std::string& directory, const DatasetDescription& description);
  /// That has a sequence.
  const Part& part_of(Split split, std::uint64_t id) const;
  DatasetShard shard_of(Split split) const {
    return split == Split::Train ? description_.shard : DatasetShard{};
  }
  void verify_records(const Part& part, Split split, const DatasetShard& shard) const;

  std::string directory_;
  DatasetDescription description_;
  std::vector<packing::SequenceIds> ids_;    ///< by split
  std::vector<std::optional<Part>> shards_;  ///< of what is trained on, by index; those that are here
  std::optional<Part> holdout_;              ///< always there
};

}  // namespace plenum::data
