#include "plenum/data/text/document_choice.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "plenum/io/compressed_input.h"

namespace plenum::data {
namespace {

constexpr std::size_t kMostFiles = 64;
constexpr std::size_t kBytesPerFile = std::size_t{1} << 16;

constexpr std::uint64_t kUsualCompression = 4;

/// Above it a file is rather one of the shards of a corpus: a long novel has 1 MB.
constexpr double kLargestDocumentBytes = 1 << 20;
/// Below it a block is rather a paragraph: those of documentation have 150 bytes, of novels 400; articles of
/// Wikipedia have 3,000 in the mean.
constexpr double kSmallestDocumentBytes = 1000;
/// Below it a line is rather a sentence, or part of one.
constexpr double kSmallestLineDocumentBytes = 400;

double ratio(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

/// Adds what the beginning of a file holds; its last line counts only if the file ends there.
void add_lines(std::string_view text, bool is_whole, TextShape& shape) {
  bool inside_block = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos && !is_whole && inside_block) return;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const bool blank = is_blank(line);
    if (!blank) {
      shape.text_bytes += line.size();
      ++shape.num_lines;
      shape.num_blocks += inside_block ? 0 : 1;
    }
    inside_block = !blank;
  }
}

void add_file(const SourceFile& file, TextShape& shape) {
  io::CompressedInput input(file.path);
  std::string text(kBytesPerFile, '\0');
  text.resize(input.read(text.data(), text.size()));
  const bool is_whole = text.size() < kBytesPerFile;
  add_lines(text, is_whole, shape);
  const bool is_packed = io::compression_of(file.path) != io::Compression::None;
  shape.file_bytes += is_whole ? text.size() : file.size_bytes * (is_packed ? kUsualCompression : 1);
  ++shape.num_files;
}

}  // namespace

TextShape sample_text(const std::vector<SourceFile>& files) {
  std::vector<const SourceFile*> texts;
  for (const SourceFile& file : files) {
    if (file.format == TextFormat::Lines && file.size_bytes > 0) texts.push_back(&file);
  }
  TextShape shape;
  const std::size_t count = std::min(kMostFiles, texts.size());
  for (std::size_t i = 0; i < count; ++i) add_file(*texts[i * texts.size() / count], shape);
  return shape;
}

DocumentRule choose_document_rule(const TextShape& shape) {
  const bool has_blank_lines = shape.num_blocks > shape.num_files;
  const bool blocks_are_paragraphs = ratio(shape.text_bytes, shape.num_blocks) < kSmallestDocumentBytes;
  const bool files_are_small = ratio(shape.file_bytes, shape.num_files) <= kLargestDocumentBytes;
  if (shape.num_files > 1 && files_are_small && (blocks_are_paragraphs || !has_blank_lines))
    return DocumentRule::File;
  if (shape.num_blocks == 0 || has_blank_lines) return DocumentRule::BlankLine;
  const bool lines_are_long = ratio(shape.text_bytes, shape.num_lines) >= kSmallestLineDocumentBytes;
  return lines_are_long && shape.num_lines > shape.num_files ? DocumentRule::Line : DocumentRule::File;
}

}  // namespace plenum::data
