#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#include "plenum/base/progress.h"
#include "plenum/data/corpus/indexed_tokens.h"
#include "plenum/data/corpus/sequence_builder.h"
#include "plenum/data/corpus/sequence_record.h"
#include "plenum/io/append_file.h"
#include "plenum/io/checksum.h"
#include "plenum/io/file.h"
#include "plenum/packing/histogram.h"

namespace plenum::data {

/// What write_sequence_index made.
struct SequenceIndexSummary {
  packing::LengthHistogram histogram;  ///< counts[n], n = 0 … max_length, special tokens included
  LostTokens lost;
  std::uint64_t random_next = 0;  ///< pairs whose second half comes from another document
};

/// Cuts all documents of a split into sequences, on `num_threads` threads, and writes their records in order
/// of increasing length, those of one length in order of the text. The order is made by a counting sort on
/// disk, in bounded memory: sequences are built once to be counted and once to be written. Returns when the
/// file is on the disk. The same bytes for any number of threads.
SequenceIndexSummary write_sequence_index(const IndexedTokens& tokens, const SequenceOptions& options,
                                          Split split, std::size_t num_threads, const std::string& path,
                                          base::Progress& progress);

/// Writes a .sequences file of records that come in order of length.
class SequenceIndexWriter {
 public:
  SequenceIndexWriter(const std::string& path, std::int64_t max_length);

  void add(const SequenceRecord& record);
  /// The records point into a file of `num_tokens` tokens. Returns when the file is on the disk.
  void finish(std::uint64_t num_tokens);

 private:
  io::AppendFile file_;
  io::Checksum checksum_;
  std::int64_t max_length_;
  std::uint64_t num_sequences_ = 0;
};

/// A .sequences file, mapped. Ids number the records, in order of increasing length.
class SequenceIndex {
 public:
  /// Throws UserError naming `path` when its header or size is wrong.
  explicit SequenceIndex(const std::string& path);

  std::uint64_t size() const { return num_sequences_; }
  std::uint64_t num_tokens() const { return num_tokens_; }
  /// id < size().
  SequenceRecord operator[](std::uint64_t id) const;

  /// Reads every record: throws UserError naming the file when the checksum in its header does not match.
  void verify() const;

 private:
  std::string path_;
  io::MappedFile file_;
  std::uint64_t num_sequences_ = 0;
  std::uint64_t num_tokens_ = 0;
};

}  // namespace plenum::data
