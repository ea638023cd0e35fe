#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plenum/data/text/text_reader.h"
#include "plenum/io/json_lines.h"

namespace plenum::data {

/// Which part of a sentence a text is: a line longer than a block comes in several.
enum class SentencePart { Whole, First, Middle, Last };

/// Receives the text of a block in order.
class TextSink {
 public:
  virtual ~TextSink() = default;

  /// A sentence of the document that is open, or part of one. Not blank, if it is whole.
  virtual void sentence(std::string_view text, SentencePart part) = 0;
  /// The document ends, with or without sentences in this block.
  virtual void end_document() = 0;
};

/// Turns blocks into sentences and documents. One per thread.
class TextParser {
 public:
  /// Borrows `files` and `options`.
  TextParser(const std::vector<SourceFile>& files, const TextOptions& options);

  /// Returns what is no text in the block and its header, if that is to be replaced. Throws UserError with
  /// file and line for a record that cannot be read, and for what is no text if that is to be refused.
  InvalidText parse(const TextBlock& block, TextSink& sink);

 private:
  void parse_text(const TextBlock& block, std::string_view text, TextSink& sink);
  void parse_json(const TextBlock& block, std::string_view records, TextSink& sink);
  void parse_delimited(const TextBlock& block, std::string_view text, TextSink& sink);
  std::string_view read_json(const TextBlock& block, std::string_view record, std::uint64_t lines_before);
  [[noreturn]] void fail_at(const TextBlock& block, std::uint64_t lines_before, std::string_view what) const;

  const std::vector<SourceFile>& files_;
  const TextOptions& options_;
  io::JsonTextField json_field_;
  InvalidText invalid_;       ///< of the block that is parsed
  std::string valid_bytes_;   ///< of a block that is not all UTF-8
  std::string valid_record_;  ///< of JSON
};

}  // namespace plenum::data
