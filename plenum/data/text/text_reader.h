#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/data/text/invalid_text.h"
#include "plenum/data/text/source_files.h"
#include "plenum/data/text/source_position.h"
#include "plenum/io/compressed_input.h"
#include "plenum/io/csv.h"

namespace plenum::data {

/// What a document of a .txt file is: the lines up to a blank one, a line, or the file. Auto stands for a
/// choice that is still to be made (choose_document_rule), which no reader takes.
enum class DocumentRule { Auto, BlankLine, Line, File };

/// How input becomes text.
struct TextOptions {
  DocumentRule documents = DocumentRule::BlankLine;
  InvalidTextRule invalid = InvalidTextRule::Refuse;
  std::string text_field = "text";                 ///< of JSON objects, and column of delimited files
  std::size_t block_bytes = std::size_t{1} << 20;  ///< about; the unit of parallel work
  std::size_t longest_record_bytes = std::size_t{1} << 28;  ///< of JSON and delimited files
  std::size_t longest_word_bytes = std::size_t{1} << 24;    ///< a line of text is cut between words
};

/// Some of the input, cut at the end of a document where there is one, and else between lines or, in a line
/// longer than a block, between words.
struct TextBlock {
  std::size_t file_index = 0;
  TextFormat format = TextFormat::Lines;
  std::string bytes;
  std::size_t text_column = 0;  ///< of delimited files
  std::size_t num_columns = 0;  ///< of delimited files
  InvalidText invalid_header;   ///< of the header of a delimited file, which lies right before the block
  SourcePosition begin;
  SourcePosition end;
  std::uint64_t file_bytes_done = 0;  ///< bytes read from disk so far over all files, for progress
};

/// Cuts a list of files into blocks, in order and in bounded memory. It only looks for boundaries; what the
/// text is, workers find out. Where it cuts depends on the block size alone, and what the text means does not
/// depend on where it cuts.
class TextReader {
 public:
  /// Borrows `files` and `options`. Begins at `start`, which an earlier reader gave as the end of a block.
  TextReader(const std::vector<SourceFile>& files, const TextOptions& options,
             const SourcePosition& start = {});

  /// Overwrites `block` with the next one; false at the end of the input.
  bool next(TextBlock& block);

 private:
  /// Where to cut, and what the cut lies inside of.
  struct Cut {
    std::size_t size;
    bool inside_document = false;
    bool inside_sentence = false;
  };

  void open_file();
  void close_file();
  void read_header();
  bool fill(std::size_t size);
  std::optional<Cut> find_cut();
  std::optional<Cut> find_cut_in_text() const;
  Cut cut_between_words() const;
  void emit(const Cut& cut, TextBlock& block);
  const SourceFile& file() const { return files_[position_.file_index]; }

  const std::vector<SourceFile>& files_;
  const TextOptions& options_;
  SourcePosition position_;
  std::optional<io::CompressedInput> input_;
  std::optional<io::CsvBoundary> csv_boundary_;
  std::size_t text_column_ = 0;
  std::size_t num_columns_ = 0;
  InvalidText invalid_header_;  ///< not handed out yet
  std::string pending_;         ///< read and not handed out yet
  bool at_file_end_ = false;
};

/// Whether a line holds nothing but ASCII white space.
bool is_blank(std::string_view line);

char delimiter_of(TextFormat format);

}  // namespace plenum::data
