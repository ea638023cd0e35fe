#include "plenum/data/text/text_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/data/text/utf8.h"

namespace plenum::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Counts line ends in bytes of a register: as many at once as fit before one of them can overflow.
std::uint64_t count_lines(std::string_view bytes) {
  constexpr std::size_t kLanes = 64;
  constexpr std::size_t kMostPerLane = 255;
  std::uint64_t count = 0;
  while (bytes.size() >= kLanes) {
    const std::size_t num_rows = std::min(bytes.size() / kLanes, kMostPerLane);
    std::array<std::uint8_t, kLanes> lanes{};
    for (std::size_t row = 0; row < num_rows; ++row) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] += static_cast<std::uint8_t>(bytes[row * kLanes + lane] == '\n');
      }
    }
    for (const std::uint8_t lane : lanes) count += lane;
    bytes.remove_prefix(num_rows * kLanes);
  }
  return count + static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
}

/// Text in another encoding than UTF-8 may pass for it where every other byte is zero, and is never worth
/// reading by halves.
void require_narrow_encoding(const std::string& path) {
  constexpr std::size_t kBytes = 512;
  std::string beginning(kBytes, '\0');
  beginning.resize(io::CompressedInput(path).read(beginning.data(), beginning.size()));
  const std::string_view wide = wide_encoding(beginning);
  base::require(wide.empty(), "{} is not UTF-8 but {}; convert it: iconv -f {} -t utf-8", path,
                wide.starts_with("utf-16") ? "UTF-16" : "UTF-32", wide);
}

bool is_delimited(TextFormat format) {
  return format == TextFormat::Csv || format == TextFormat::Tsv;
}

}  // namespace

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\f\v") == std::string_view::npos;
}

char delimiter_of(TextFormat format) {
  return format == TextFormat::Tsv ? '\t' : ',';
}

TextReader::TextReader(const std::vector<SourceFile>& files, const TextOptions& options,
                       const SourcePosition& start)
    : files_(files), options_(options), position_(start) {
  base::check(options.block_bytes > 0, "blocks must not be empty");
  base::check(options.documents != DocumentRule::Auto, "what a document is must be chosen before reading");
}

bool TextReader::next(TextBlock& block) {
  while (position_.file_index < files_.size()) {
    if (!input_) open_file();
    std::size_t wanted = options_.block_bytes;
    while (true) {
      const bool more = fill(wanted);
      const bool has_more_to_say = position_.inside_document || invalid_header_.places > 0;
      if (pending_.empty() && !has_more_to_say) break;
      const std::optional<Cut> cut = more ? find_cut() : Cut{.size = pending_.size()};
      if (cut) {
        emit(*cut, block);
        return true;
      }
      wanted = pending_.size() + std::max(options_.block_bytes, pending_.size() / 2);
    }
    close_file();
  }
  return false;
}

void TextReader::open_file() {
  if (position_.offset == 0) require_narrow_encoding(file().path);
  input_.emplace(file().path);
  at_file_end_ = false;
  pending_.clear();
  csv_boundary_.reset();
  fill(kByteOrderMark.size());
  const bool marked = pending_.starts_with(kByteOrderMark);
  if (is_delimited(file().format)) {
    if (marked) pending_.erase(0, kByteOrderMark.size());
    csv_boundary_.emplace(delimiter_of(file().format));
    const SourcePosition resume = position_;
    position_.offset = marked ? kByteOrderMark.size() : 0;
    position_.line = 0;
    read_header();
    if (resume.offset > 0) invalid_header_ = {};  // it went with the first block
    if (resume.offset > position_.offset) {
      const std::uint64_t ahead = resume.offset - position_.offset;
      const std::size_t held = std::min<std::uint64_t>(ahead, pending_.size());
      pending_.erase(0, held);
      input_->skip(ahead - held);
      position_ = resume;
    }
    return;
  }
  if (position_.offset > 0) {
    const std::size_t held = std::min<std::uint64_t>(position_.offset, pending_.size());
    pending_.erase(0, held);
    input_->skip(position_.offset - held);
  } else if (marked) {
    pending_.erase(0, kByteOrderMark.size());
    position_.offset = kByteOrderMark.size();
  }
}

void TextReader::close_file() {
  input_.reset();
  position_ = {.file_index = position_.file_index + 1,
               .offset = 0,
               .line = 0,
               .earlier_bytes = position_.earlier_bytes + file().size_bytes};
}

/// Consumes the first record of a delimited file and finds the text column in it.
void TextReader::read_header() {
  std::size_t wanted = std::min(options_.block_bytes, options_.longest_record_bytes);
  while (fill(wanted)) {
    csv_boundary_->scan(pending_);
    if (csv_boundary_->first_end() > 0) break;
    base::require(pending_.size() < options_.longest_record_bytes,
                  "{}: the header is longer than {}; is a quote not closed?", file().path,
                  base::format_bytes(options_.longest_record_bytes));
    wanted = pending_.size() * 2;
  }
  csv_boundary_->scan(pending_);
  const std::size_t size = csv_boundary_->first_end() > 0 ? csv_boundary_->first_end() : pending_.size();
  const std::string_view header = std::string_view(pending_).substr(0, size);
  std::string replaced;
  const std::string_view valid_header =
      replace_invalid_bytes(header, position_, file().path, options_.invalid, replaced, invalid_header_);
  std::vector<std::string> names;
  try {
    io::CsvRecords records(valid_header, delimiter_of(file().format));
    records.next(names);
  } catch (const base::UserError& error) {
    base::fail("{}:1: {}", file().path, error.what());
  }
  const auto found = std::find(names.begin(), names.end(), options_.text_field);
  base::require(found != names.end(), "{}: no column is named '{}'; choose one of {} by --text-field",
                file().path, options_.text_field,
                names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  base::require(std::find(found + 1, names.end(), options_.text_field) == names.end(),
                "{}: two columns are named '{}'; rename the one that is not to be read", file().path,
                options_.text_field);
  text_column_ = static_cast<std::size_t>(found - names.begin());
  num_columns_ = names.size();
  position_.offset += size;
  position_.line += count_lines(header);
  pending_.erase(0, size);
  csv_boundary_->clear();
}

/// Reads until `size` bytes are pending. False when the file ends before or there.
bool TextReader::fill(std::size_t size) {
  if (!at_file_end_ && pending_.size() < size) {
    const std::size_t held = pending_.size();
    pending_.resize(size);
    const std::size_t count = input_->read(pending_.data() + held, size - held);
    pending_.resize(held + count);
    at_file_end_ = held + count < size;
  }
  return !at_file_end_;
}

std::optional<TextReader::Cut> TextReader::find_cut() {
  if (file().format == TextFormat::Lines) return find_cut_in_text();
  std::size_t end = 0;
  if (csv_boundary_) {
    csv_boundary_->scan(pending_);
    end = csv_boundary_->last_end();
  } else {
    end = pending_.rfind('\n') + 1;  // npos + 1 is 0
  }
  if (end > 0) return Cut{.size = end};
  base::require(pending_.size() < options_.longest_record_bytes, "{}:{}: the record is longer than {}{}",
                file().path, position_.line + 1, base::format_bytes(options_.longest_record_bytes),
                csv_boundary_ ? "; is a quote not closed?" : "");
  return std::nullopt;
}

/// The last end of a document, else the last end of a line, else a place between words.
std::optional<TextReader::Cut> TextReader::find_cut_in_text() const {
  const std::string_view text = pending_;
  const std::size_t last_line_end = text.rfind('\n');
  if (last_line_end != std::string_view::npos) {
    const std::size_t size = last_line_end + 1;
    if (options_.documents == DocumentRule::Line) return Cut{.size = size};
    if (options_.documents == DocumentRule::File) {
      const bool has_text = text.find_first_not_of(" \t\r\f\v\n") < size;
      return Cut{.size = size, .inside_document = position_.inside_document || has_text};
    }
    for (std::size_t end = last_line_end; end != std::string_view::npos;) {
      const std::size_t before = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
      const bool whole_line = before != std::string_view::npos || !position_.inside_sentence;
      const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
      if (whole_line && is_blank(text.substr(begin, end - begin))) return Cut{.size = end + 1};
      end = before;
    }
    return Cut{.size = size, .inside_document = true};
  }
  const Cut cut = cut_between_words();
  if (cut.size > 0) return cut;
  return std::nullopt;
}

/// Cuts a line that does not end. The cut lies behind a space or tab, so that no word is torn, and behind
/// some text, so that whether the line is blank is known; a word without end is cut between two characters.
/// Size 0: more must be read first.
TextReader::Cut TextReader::cut_between_words() const {
  const std::string_view text = pending_;
  const std::size_t space = text.find_last_of(" \t");
  Cut cut{.size = 0, .inside_document = true, .inside_sentence = true};
  if (space != std::string_view::npos && (position_.inside_sentence || !is_blank(text.substr(0, space)))) {
    cut.size = space + 1;
  } else if (text.size() >= options_.longest_word_bytes) {
    cut.size = text.size();
    const auto continues_character = [&](std::size_t at) { return (text[at] & 0xC0) == 0x80; };
    for (int step = 0; step < 3 && cut.size > 1 && continues_character(cut.size - 1); ++step) --cut.size;
    if (cut.size > 1) --cut.size;  // the first byte of the last character, which may not be whole
  }
  return cut;
}

void TextReader::emit(const Cut& cut, TextBlock& block) {
  block.file_index = position_.file_index;
  block.format = file().format;
  block.text_column = text_column_;
  block.num_columns = num_columns_;
  block.invalid_header = std::exchange(invalid_header_, {});
  block.begin = position_;
  // The block's old buffer takes the rest, unless an unusually long record left it too large to keep.
  if (block.bytes.capacity() > 4 * options_.block_bytes) block.bytes = {};
  block.bytes.reserve(options_.block_bytes);
  block.bytes.assign(pending_, cut.size);
  pending_.resize(cut.size);
  std::swap(block.bytes, pending_);
  if (csv_boundary_) csv_boundary_->clear();
  position_.offset += cut.size;
  position_.line += count_lines(block.bytes);
  position_.inside_document = cut.inside_document;
  position_.inside_sentence = cut.inside_sentence;
  block.end = position_;
  block.file_bytes_done = position_.earlier_bytes + input_->file_position();
}

}  // namespace plenum::data
