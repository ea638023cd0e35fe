#include "plenum/io/csv.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::io {

void CsvBoundary::clear() {
  scanned_ = 0;
  first_end_ = 0;
  last_end_ = 0;
  closed_at_ = 0;
  quoted_ = false;
}

void CsvBoundary::scan(std::string_view bytes) {
  const auto note_ends = [&](std::size_t begin, std::size_t end) {
    const std::string_view part = bytes.substr(begin, end - begin);
    if (first_end_ == 0) {
      if (const std::size_t at = part.find('\n'); at != std::string_view::npos) first_end_ = begin + at + 1;
    }
    if (const std::size_t at = part.rfind('\n'); at != std::string_view::npos) last_end_ = begin + at + 1;
  };
  while (scanned_ < bytes.size()) {
    const std::size_t quote = bytes.find('"', scanned_);
    if (!quoted_) note_ends(scanned_, std::min(quote, bytes.size()));
    if (quote == std::string_view::npos) {
      scanned_ = bytes.size();
      return;
    }
    // A doubled quote closes the field and opens it again at once, which changes nothing; otherwise only a
    // quote at the beginning of a field opens one.
    const char before = quote == 0 ? '\n' : bytes[quote - 1];
    const bool opens = before == delimiter_ || before == '\n' || quote == closed_at_;
    if (quoted_) closed_at_ = quote + 1;
    quoted_ = quoted_ ? false : opens;
    scanned_ = quote + 1;
  }
}

void CsvRecords::skip_line_ends() {
  while (position_ < text_.size() && (text_[position_] == '\n' || text_[position_] == '\r')) ++position_;
}

bool CsvRecords::next(std::vector<std::string>& fields) {
  skip_line_ends();
  lines_before_ +=
      static_cast<std::uint64_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                            text_.begin() + static_cast<std::ptrdiff_t>(position_), '\n'));
  counted_ = position_;
  std::size_t num_fields = 0;
  if (position_ == text_.size()) return false;
  while (true) {
    if (fields.size() <= num_fields) fields.emplace_back();
    std::string& field = fields[num_fields++];
    field.clear();
    if (position_ < text_.size() && text_[position_] == '"') {
      quoted_field(field);
    } else {
      plain_field(field);
    }
    if (position_ == text_.size() || text_[position_] != delimiter_) break;
    ++position_;
  }
  fields.resize(num_fields);
  if (position_ < text_.size()) ++position_;  // the line feed
  return true;
}

void CsvRecords::quoted_field(std::string& field) {
  ++position_;
  while (true) {
    const std::size_t quote = text_.find('"', position_);
    base::require(quote != std::string_view::npos, "a quoted field is not closed");
    field.append(text_.substr(position_, quote - position_));
    position_ = quote + 1;
    if (position_ == text_.size() || text_[position_] != '"') break;
    field.push_back('"');
    ++position_;
  }
  if (text_.substr(position_).starts_with("\r\n") || text_.substr(position_) == "\r") ++position_;
  const bool ends = position_ == text_.size() || text_[position_] == delimiter_ || text_[position_] == '\n';
  base::require(ends, "a quoted field goes on after its closing quote");
}

void CsvRecords::plain_field(std::string& field) {
  std::size_t end = position_;
  while (end < text_.size() && text_[end] != delimiter_ && text_[end] != '\n') ++end;
  std::string_view value = text_.substr(position_, end - position_);
  if ((end == text_.size() || text_[end] == '\n') && value.ends_with('\r')) value.remove_suffix(1);
  field.append(value);
  position_ = end;
}

}  // namespace plenum::io
