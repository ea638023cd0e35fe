#include "plenum/data/text_parser.h"

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

}  // namespace

TextParser::TextParser(const std::vector<SourceFile>& files, const TextOptions& options)
    : files_(files), options_(options), json_field_(options.text_field) {}

void TextParser::parse(const TextBlock& block, TextSink& sink) {
  switch (block.format) {
    case TextFormat::Lines:
      return parse_text(block, sink);
    case TextFormat::JsonLines:
      return parse_json(block, sink);
    case TextFormat::Csv:
    case TextFormat::Tsv:
      return parse_delimited(block, sink);
  }
}

void TextParser::parse_text(const TextBlock& block, TextSink& sink) {
  std::string_view rest = block.bytes;
  bool continues = block.begin.inside_sentence;
  bool document_is_open = block.begin.inside_document;
  const bool documents_are_lines = options_.documents == DocumentRule::Line;
  while (!rest.empty()) {
    std::string_view line = take_line(rest);
    const bool unfinished = rest.empty() && block.end.inside_sentence;
    if (!unfinished) line = without_carriage_return(line);
    const SentencePart part = part_of(continues, unfinished);
    const bool blank = part == SentencePart::Whole && is_blank(line);
    if (!blank) sink.sentence(line, part);
    if (documents_are_lines ? !unfinished : blank && document_is_open) sink.end_document();
    document_is_open = documents_are_lines ? unfinished : !blank;
    continues = false;
  }
  if (document_is_open && !block.end.inside_document) sink.end_document();
}

void TextParser::parse_json(const TextBlock& block, TextSink& sink) {
  std::string_view rest = block.bytes;
  for (std::uint64_t lines_before = 0; !rest.empty(); ++lines_before) {
    const std::string_view line = take_line(rest);
    if (is_blank(line)) continue;
    std::string_view text;
    try {
      text = json_field_.read(line);
    } catch (const base::UserError& error) {
      fail_at(block, lines_before, error.what());
    }
    emit_document(text, sink);
  }
}

void TextParser::parse_delimited(const TextBlock& block, TextSink& sink) {
  io::CsvRecords records(block.bytes, delimiter_of(block.format));
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

void TextParser::fail_at(const TextBlock& block, std::uint64_t lines_before, const char* what) const {
  base::fail("{}:{}: {}", files_[block.file_index].path, block.begin.line + lines_before + 1, what);
}

}  // namespace plenum::data
