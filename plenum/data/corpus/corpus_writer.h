#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plenum/data/corpus/document_hash.h"
#include "plenum/data/corpus/split.h"
#include "plenum/data/corpus/tokenized_block.h"
#include "plenum/io/append_file.h"
#include "plenum/io/checksum.h"

namespace plenum::data {

/// What one split of a corpus holds.
struct SplitCounts {
  std::uint64_t documents = 0;
  std::uint64_t sentences = 0;
  std::uint64_t tokens = 0;
};

/// What was read.
struct CorpusCounts {
  std::array<SplitCounts, 2> splits;
  std::uint64_t empty_documents = 0;  ///< without a token; not written
  std::uint64_t unknown_tokens = 0;
  std::uint64_t text_bytes = 0;  ///< unpacked
  InvalidText invalid;           ///< among them

  SplitCounts& operator[](Split split) { return splits[index_of(split)]; }
  const SplitCounts& operator[](Split split) const { return splits[index_of(split)]; }
  std::uint64_t documents() const { return splits[0].documents + splits[1].documents; }
  std::uint64_t tokens() const { return splits[0].tokens + splits[1].tokens; }
};

/// The counts in what CorpusWriter::save() returned.
CorpusCounts corpus_counts_from(const nlohmann::json& saved);

/// The files that a corpus is gathered in, in `directory`.
struct CorpusPaths {
  explicit CorpusPaths(const std::string& directory);

  std::array<std::string, 2> tokens;     ///< <split>.bin
  std::array<std::string, 2> index;      ///< <split>.idx; CorpusWriter leaves the lengths of sentences in it
  std::array<std::string, 2> sequences;  ///< <split>.sequences
  std::array<std::string, 2> documents;  ///< number of sentences up to each document's end, u64; temporary
  std::string hashes;                    ///< identity of each document, u64; temporary
};

/// Appends tokenized blocks, in order, to the token files of the two splits. Documents and sentences may go
/// on over blocks. Its state can be saved between blocks and taken up again, also inside a document.
class CorpusWriter {
 public:
  /// Starts anew, or where `saved` left off: files are cut back to the sizes it names.
  CorpusWriter(const std::string& directory, TokenWidth width, const HoldoutRule& holdout,
               const std::optional<nlohmann::json>& saved);

  void add(const TokenizedBlock& block);

  /// Whether save() may be called: not in the middle of a sentence, nor of a document that may yet be moved
  /// to the holdout split, because that would take away what a saved state counts on.
  bool can_save() const { return !sentence_is_open_ && !(document_is_open_ && holdout_.sets_aside()); }
  /// Hands everything to the kernel and returns what the constructor needs to resume here, which holds
  /// once sync() has returned.
  nlohmann::json save();
  /// Returns when everything up to the last save() is on the disk. Another thread may add() meanwhile.
  void sync() const;

  const CorpusCounts& counts() const { return counts_; }

 private:
  struct SplitFiles {
    SplitFiles(const CorpusPaths& paths, Split split, const nlohmann::json& sizes);
    io::AppendFile tokens;
    io::AppendFile lengths;  ///< in the index, behind room for its header
    io::AppendFile documents;
  };
  /// The document that is being written, if any.
  struct OpenDocument {
    std::uint64_t tokens = 0;
    std::uint64_t sentences = 0;
    DocumentHash hash;
  };

  SplitFiles& files(Split split) { return files_[index_of(split)]; }
  void add_whole(const WholeDocuments& whole, Split split);
  void add_piece(const DocumentPiece& piece, const TokenizedBlock& block);
  void end_sentence();
  void end_document();

  HoldoutRule holdout_;
  TokenWidth width_;
  std::array<SplitFiles, 2> files_;
  io::AppendFile hashes_;
  CorpusCounts counts_;
  OpenDocument document_;
  bool document_is_open_ = false;
  bool sentence_is_open_ = false;
  std::uint64_t sentence_tokens_ = 0;
  std::optional<io::Checksum> sentence_hash_;  ///< of a sentence that goes on over blocks
  std::vector<std::uint64_t> sentence_ends_;   ///< scratch of add_whole()
};

}  // namespace plenum::data
