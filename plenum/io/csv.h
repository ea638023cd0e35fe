#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::io {

/// Finds where records of a delimited file (RFC 4180) end, over bytes that arrive in pieces, without looking
/// at the fields: it leaps from quote to quote.
class CsvBoundary {
 public:
  explicit CsvBoundary(char delimiter) : delimiter_(delimiter) {}

  /// Scans what `bytes` has beyond what it scanned before. `bytes` begins where the last clear() left off.
  void scan(std::string_view bytes);
  /// The number of bytes up to and with the last line end outside quotes; 0 if there is none yet.
  std::size_t last_end() const { return last_end_; }
  /// The number of bytes up to and with the first line end outside quotes; 0 if there is none yet.
  std::size_t first_end() const { return first_end_; }
  /// Begins anew at the beginning of a record.
  void clear();

 private:
  char delimiter_;
  std::size_t scanned_ = 0;
  std::size_t first_end_ = 0;
  std::size_t last_end_ = 0;
  std::size_t closed_at_ = 0;  ///< behind the quote that closed the last quoted field
  bool quoted_ = false;
};

/// Splits a text of whole records into fields: quoted fields may hold delimiters, line ends and doubled
/// quotes; a quote inside an unquoted field stands for itself; LF and CRLF end a record; empty lines are
/// skipped.
class CsvRecords {
 public:
  CsvRecords(std::string_view text, char delimiter) : text_(text), delimiter_(delimiter) {}

  /// Overwrites `fields` with the next record; false at the end. Throws UserError, without a place, when a
  /// quoted field is not closed or has text behind its closing quote.
  bool next(std::vector<std::string>& fields);

  /// The number of lines before the record that next() returned or refused.
  std::uint64_t lines_before() const { return lines_before_; }

 private:
  void skip_line_ends();
  void quoted_field(std::string& field);
  void plain_field(std::string& field);

  std::string_view text_;
  char delimiter_;
  std::size_t position_ = 0;
  std::size_t counted_ = 0;
  std::uint64_t lines_before_ = 0;
};

}  // namespace plenum::io
