#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::trace {

/// Reads XML strictly enough to tell that a file is well formed, and counts what is in it.
class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : rest_(text) {
    while (error_.empty() && !rest_.empty()) read_piece();
    if (error_.empty() && !open_.empty()) error_ = "not closed: " + open_.back();
  }

  const std::string& error() const { return error_; }
  std::size_t num_elements(const std::string& name) const {
    const auto found = num_elements_.find(name);
    return found == num_elements_.end() ? 0 : found->second;
  }
  /// All character data, entities decoded.
  const std::string& text() const { return text_; }

 private:
  void read_piece() {
    const std::size_t begin = rest_.find('<');
    append_text(rest_.substr(0, begin));
    if (begin == std::string_view::npos) {
      rest_ = {};
      return;
    }
    const std::size_t end = rest_.find('>', begin);
    if (end == std::string_view::npos) {
      error_ = "a tag does not end";
      return;
    }
    read_tag(rest_.substr(begin + 1, end - begin - 1));
    rest_.remove_prefix(end + 1);
  }

  void read_tag(std::string_view tag) {
    if (tag.find('<') != std::string_view::npos) error_ = "'<' in a tag: " + std::string(tag);
    if (tag.starts_with('/')) {
      if (open_.empty() || open_.back() != tag.substr(1)) {
        error_ = "closes what is not open: " + std::string(tag);
        return;
      }
      open_.pop_back();
      return;
    }
    const bool is_empty = tag.ends_with('/');
    if (is_empty) tag.remove_suffix(1);
    const std::string name(tag.substr(0, tag.find(' ')));
    ++num_elements_[name];
    read_attributes(tag.substr(name.size()));
    if (open_.empty() && num_elements_.size() > 1) error_ = "more than one root";
    if (!is_empty) open_.push_back(name);
  }

  void read_attributes(std::string_view text) {
    while (error_.empty() && text.find_first_not_of(' ') != std::string_view::npos) {
      text.remove_prefix(text.find_first_not_of(' '));
      const std::size_t equals = text.find("=\"");
      const std::size_t end = equals == std::string_view::npos ? equals : text.find('"', equals + 2);
      if (end == std::string_view::npos) {
        error_ = "an attribute without a value: " + std::string(text);
        return;
      }
      text.remove_prefix(end + 1);
    }
  }

  void append_text(std::string_view text) {
    static const std::map<std::string_view, char> kEntities = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
    while (!text.empty()) {
      if (text.front() != '&') {
        text_ += text.front();
        text.remove_prefix(1);
        continue;
      }
      const std::string_view entity = text.substr(0, text.find(';') + 1);
      const auto found = kEntities.find(entity);
      if (found == kEntities.end()) {
        error_ = "a bare '&'";
        return;
      }
      text_ += found->second;
      text.remove_prefix(entity.size());
    }
  }

  std::string_view rest_;
  std::vector<std::string> open_;
  std::map<std::string, std::size_t> num_elements_;
  std::string text_;
  std::string error_;
};

}  // namespace plenum::trace
