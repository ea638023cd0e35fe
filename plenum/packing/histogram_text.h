#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plenum/packing/histogram.h"

namespace plenum::packing {

/// Reads a histogram from text that arrives in pieces of any size, in memory that does not depend on the
/// amount of text. Two forms:
///
/// *Histogram*: the first line decides. If it is one number, line i is the number of sequences of length i.
/// If it is two, separated by a comma, blanks or both, every line is a length and its number of sequences, in
/// any order, each length at most once.
///
/// *Lengths*: every line is the length of one sequence.
///
/// Numbers are whole and not negative, lines end in LF or CRLF, empty lines are allowed at the end only.
/// Anything else throws UserError with name and line.
class HistogramText {
 public:
  enum class Form { Histogram, Lengths };

  /// `name` stands before the line number in errors: the name of the file.
  HistogramText(Form form, std::string name);

  void feed(std::string_view text);

  /// The histogram of all that was fed. Throws UserError if there was no sequence.
  LengthHistogram finish();

 private:
  enum class Layout { Unknown, CountPerLine, Pairs, LengthPerLine };

  void read_line(std::string_view line);
  void read_pair(std::string_view line);
  std::uint64_t read_number(std::string_view text, std::string_view what) const;
  void add(std::uint64_t length, std::uint64_t count);
  /// Throws UserError with the place.
  [[noreturn]] void fail(const std::string& message) const;

  std::string name_;
  Layout layout_;
  std::string pending_;  ///< the beginning of a line whose end has not arrived
  std::uint64_t line_number_ = 0;
  std::uint64_t first_empty_line_ = 0;  ///< 0: none
  std::uint64_t num_tokens_ = 0;
  LengthHistogram histogram_;
};

}  // namespace plenum::packing
