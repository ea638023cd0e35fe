#include "plenum/packing/histogram_text.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {
namespace {

constexpr std::size_t kLongestLine = 128;
constexpr std::string_view kBlanks = " \t";

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

/// Text fit for an error message of one line: short, and nothing that a terminal would act on.
std::string quote(std::string_view text) {
  constexpr std::size_t kShown = 32;
  std::string quoted = "'";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    quoted += byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return quoted + (text.size() > kShown ? "...'" : "'");
}

}  // namespace

HistogramText::HistogramText(Form form, std::string name)
    : name_(std::move(name)), layout_(form == Form::Lengths ? Layout::LengthPerLine : Layout::Unknown) {}

void HistogramText::feed(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view part = text.substr(0, end);
    if (end != std::string_view::npos && pending_.empty()) {
      read_line(part);
    } else {
      pending_.append(part.substr(0, kLongestLine + 1));
      if (pending_.size() > kLongestLine || end != std::string_view::npos) {
        read_line(std::exchange(pending_, {}));
      }
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

LengthHistogram HistogramText::finish() {
  if (!pending_.empty()) read_line(std::exchange(pending_, {}));
  base::require(line_number_ > 0, "{}: the file is empty", name_);
  base::require(num_tokens_ > 0, "{}: there are no sequences", name_);
  return std::move(histogram_);
}

void HistogramText::fail(const std::string& message) const {
  base::fail("{}:{}: {}", name_, line_number_, message);
}

void HistogramText::read_line(std::string_view line) {
  ++line_number_;
  if (line.size() > kLongestLine) fail("a line must hold a whole number, not " + quote(line));
  if (line.ends_with('\r')) line.remove_suffix(1);
  line = trim(line);
  if (line.empty()) {
    if (first_empty_line_ == 0) first_empty_line_ = line_number_;
    return;
  }
  if (first_empty_line_ > 0) {
    line_number_ = first_empty_line_;
    fail("a line must hold a whole number, but this one is empty");
  }
  if (layout_ == Layout::Unknown) {
    layout_ = line.find_first_of(", \t") == std::string_view::npos ? Layout::CountPerLine : Layout::Pairs;
  }
  switch (layout_) {
    case Layout::CountPerLine:
      return add(line_number_, read_number(line, "a number of sequences"));
    case Layout::LengthPerLine:
      return add(read_number(line, "a length"), 1);
    case Layout::Pairs:
    case Layout::Unknown:
      return read_pair(line);
  }
}

void HistogramText::read_pair(std::string_view line) {
  const std::size_t end = std::min(line.find_first_of(", \t"), line.size());
  std::string_view rest = trim(line.substr(end));
  if (rest.starts_with(',')) rest = trim(rest.substr(1));
  if (rest.empty()) fail("a line must hold a length and a number of sequences, not " + quote(line));
  const std::uint64_t length = read_number(line.substr(0, end), "a length");
  const std::uint64_t count = read_number(rest, "a number of sequences");
  if (length < histogram_.counts.size() && histogram_.counts[length] > 0) {
    fail(fmt::format("length {} was given before", length));
  }
  add(length, count);
}

std::uint64_t HistogramText::read_number(std::string_view text, std::string_view what) const {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return value;
  const bool is_number = std::all_of(text.begin() + (text.starts_with('-') ? 1 : 0), text.end(),
                                     [](char c) { return c >= '0' && c <= '9'; });
  if (is_number && text.size() > 1 && text.starts_with('-')) {
    fail(fmt::format("{} must not be negative: {}", what, quote(text)));
  }
  if (error == std::errc::result_out_of_range) fail(fmt::format("{} is too large: {}", what, quote(text)));
  fail(fmt::format("{} must be a whole number, not {}", what, quote(text)));
}

void HistogramText::add(std::uint64_t length, std::uint64_t count) {
  if (count == 0) return;
  if (length == 0) fail("a sequence must have at least one token");
  if (length > static_cast<std::uint64_t>(kGreatestCapacity)) {
    fail(fmt::format("length {} is above {}", length, kGreatestCapacity));
  }
  std::uint64_t tokens = 0;
  const bool overflows = __builtin_mul_overflow(length, count, &tokens) ||
                         __builtin_add_overflow(num_tokens_, tokens, &num_tokens_) ||
                         num_tokens_ > kMostTokens;
  if (overflows) fail("there are more than 2^62 tokens, which cannot be counted");
  if (length >= histogram_.counts.size()) histogram_.counts.resize(length + 1);
  histogram_.counts[length] += count;
}

}  // namespace plenum::packing
