#include "plenum/data/text/text_parser.h"

#include <string>

#include "plenum/base/check.h"
#include "plenum/io/csv.h"

namespace plenum::data {
namespace {

/// Takes the next line off `rest`, without its end.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

std::string_view without_carriage_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// The text of one record: its lines are sentences, and it is a document.
void emit_document(std::string_view text, TextSink& sink) {
  while (!text.empty()) {
    const std::string_view line = without_carriage_return(take_line(text));
    if (!is_blank(line)) sink.sentence(line, SentencePart::Whole);
  }
  sink.end_document();
}

SentencePart part_of(bool continues, bool unfinished) {
  if (continues) return unfinished ? SentencePart::Middle : SentencePart::Last;
  return unfinished ? SentencePart::First : SentencePart::Whole;
}

/// Whether a document ends with a line. Blank lines are documents only where each line is one.
bool ends_document(DocumentRule rule, bool blank, bool unfinished, bool document_is_open) {
  if (rule == DocumentRule::Line) return !unfinished;
  return rule == DocumentRule::BlankLine && blank && document_is_open;
}

}  // namespace

TextParser::TextParser(const std::vector<SourceFile>& files, const TextOptions& options)
    : files_(files), options_(options), json_field_(options.text_field) {}

InvalidText TextParser::parse(const TextBlock& block, TextSink& sink) {
  invalid_ = block.invalid_header;
  // A block ends between two characters, so that a file is UTF-8 where its blocks are.
  const std::string_view bytes = replace_invalid_bytes(
      block.bytes, block.begin, files_[block.file_index].path, options_.invalid, valid_bytes_, invalid_);
  switch (block.format) {
    case TextFormat::Lines:
      parse_text(block, bytes, sink);
      break;
    case TextFormat::JsonLines:
      parse_json(block, bytes, sink);
      break;
    case TextFormat::Csv:
    case TextFormat::Tsv:
      parse_delimited(block, bytes, sink);
      break;
  }
  return invalid_;
}

void TextParser::parse_text(const TextBlock& block, std::string_view text, TextSink& sink) {
  std::string_view rest = text;
  bool continues = block.begin.inside_sentence;
  bool document_is_open = block.begin.inside_document;
  while (!rest.empty()) {
    std::string_view line = take_line(rest);
    const bool unfinished = rest.empty() && block.end.inside_sentence;
    if (!unfinished) line = without_carriage_return(line);
    const SentencePart part = part_of(continues, unfinished);
    const bool blank = part == SentencePart::Whole && is_blank(line);
    if (!blank) sink.sentence(line, part);
    document_is_open = document_is_open || !blank;
    if (ends_document(options_.documents, blank, unfinished, document_is_open)) {
      sink.end_document();
      document_is_open = false;
    }
    continues = false;
  }
  if (document_is_open && !block.end.inside_document) sink.end_document();
}

void TextParser::parse_json(const TextBlock& block, std::string_view records, TextSink& sink) {
  std::string_view rest = records;
  for (std::uint64_t lines_before = 0; !rest.empty(); ++lines_before) {
    const std::string_view line = take_line(rest);
    if (is_blank(line)) continue;
    emit_document(read_json(block, line, lines_before), sink);
  }
}

std::string_view TextParser::read_json(const TextBlock& block, std::string_view record,
                                       std::uint64_t lines_before) {
  try {
    return json_field_.read(record);
  } catch (const base::UserError& error) {
    valid_record_ = record;
    const std::size_t replaced = io::replace_lone_surrogates(valid_record_);
    if (replaced == 0) fail_at(block, lines_before, error.what());
    if (options_.invalid == InvalidTextRule::Refuse) {
      fail_at(
          block, lines_before,
          "the line escapes half of a surrogate pair, such as \\ud83d, which is no character; mend it, or "
          "add --invalid-utf8 replace");
    }
    for (std::size_t i = 0; i < replaced; ++i)
      invalid_.count(block.file_index, block.begin.line + lines_before + 1, io::kJsonEscapeBytes);
  }
  try {
    return json_field_.read(valid_record_);
  } catch (const base::UserError& error) {
    fail_at(block, lines_before, error.what());
  }
}

void TextParser::parse_delimited(const TextBlock& block, std::string_view text, TextSink& sink) {
  io::CsvRecords records(text, delimiter_of(block.format));
  std::vector<std::string> fields;
  while (true) {
    try {
      if (!records.next(fields)) return;
      base::require(fields.size() == block.num_columns, "the record has {} fields, but the header has {}",
                    fields.size(), block.num_columns);
    } catch (const base::UserError& error) {
      fail_at(block, records.lines_before(), error.what());
    }
    emit_document(fields[block.text_column], sink);
  }
}

void TextParser::fail_at(const TextBlock& block, std::uint64_t lines_before, std::string_view what) const {
  base::fail("{}:{}: {}", files_[block.file_index].path, block.begin.line + lines_before + 1, what);
}

}  // namespace plenum::data
