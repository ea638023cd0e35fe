#include "plenum/schedule/text/located_json.h"

#include <iterator>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

using nlohmann::json;

// Depths as the parser counts them: of the object's keys, of objects in its lists and of their keys.
constexpr int kKeyDepth = 1;
constexpr int kItemDepth = 2;
constexpr int kItemKeyDepth = 3;
constexpr int kDeepest = 3;

/// Reads characters and counts the lines that have begun.
class LineCounter {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCounter(const char* at, std::size_t& line) : at_(at), line_(&line) {}

  reference operator*() const { return *at_; }
  LineCounter& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  LineCounter operator++(int) {
    LineCounter before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const LineCounter& a, const LineCounter& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  std::size_t* line_;
};

class LocatingParser {
 public:
  LocatingParser(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  LocatedJson run() {
    const auto notice = [this](int depth, json::parse_event_t event, json& parsed) {
      note(depth, event, parsed);
      return true;
    };
    try {
      result_.value = json::parse(LineCounter(text_.data(), line_),
                                  LineCounter(text_.data() + text_.size(), line_), notice);
    } catch (const json::exception&) {  // also a number that no type holds
      base::fail("{}:{}: this is not JSON", source_, line_);
    }
    base::require(result_.value.is_object(), "{}:{}: a JSON object is expected", source_, line_);
    return std::move(result_);
  }

 private:
  void note(int depth, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      base::require(depth <= kDeepest, "{}:{}: this is nested too deeply", source_, line_);
      if (event == json::parse_event_t::object_start && depth == kItemDepth)
        result_.item_lines.emplace_back();
    } else if (event == json::parse_event_t::key) {
      if (depth == kKeyDepth) add(parsed, result_.lines);
      if (depth == kItemKeyDepth && !result_.item_lines.empty()) add(parsed, result_.item_lines.back());
    }
  }

  void add(const json& key, LocatedJson::Lines& lines) {
    const auto& name = key.get_ref<const std::string&>();
    base::require(lines.emplace(name, line_).second, "{}:{}: \"{}\" is given twice", source_, line_, name);
  }

  std::string_view text_;
  std::string_view source_;
  std::size_t line_ = 1;
  LocatedJson result_;
};

}  // namespace

LocatedJson parse_located_json(std::string_view text, std::string_view source) {
  return LocatingParser(text, source).run();
}

}  // namespace plenum::schedule
