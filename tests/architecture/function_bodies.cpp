#include "tests/architecture/function_bodies.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>

namespace plenum::architecture {
namespace {

/// The lines with everything blanked out that is not code: comments, literals and what the preprocessor
/// reads.
class CodeOnly {
 public:
  explicit CodeOnly(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) text_ += line + '\n';
    while (at_ < text_.size()) step();
  }
  const std::string& text() const { return text_; }

 private:
  void step() {
    if (is_first_of_line() && text_[at_] == '#') return blank_directive();
    if (starts_with("//")) return blank_until("\n");
    if (starts_with("/*")) return blank_through("*/", at_ + 2);
    if (starts_with("R\"")) return blank_through(")" + raw_delimiter() + "\"", at_ + 2);
    if (text_[at_] == '"') return blank_literal('"');
    // 1'000 is no character.
    if (text_[at_] == '\'' && (at_ == 0 || std::isalnum(static_cast<unsigned char>(text_[at_ - 1])) == 0))
      return blank_literal('\'');
    ++at_;
  }

  bool starts_with(const std::string& start) const { return text_.compare(at_, start.size(), start) == 0; }
  bool is_first_of_line() const {
    const std::size_t begin = text_.find_last_not_of(" \t", at_ == 0 ? 0 : at_ - 1);
    return at_ == 0 || begin == std::string::npos || text_[begin] == '\n';
  }
  std::string raw_delimiter() const { return text_.substr(at_ + 2, text_.find('(', at_) - at_ - 2); }

  void blank_to(std::size_t end) {
    for (end = std::min(end, text_.size()); at_ < end; ++at_) {
      if (text_[at_] != '\n') text_[at_] = ' ';
    }
  }
  void blank_until(const std::string& end) { blank_to(text_.find(end, at_)); }
  void blank_through(const std::string& end, std::size_t from) {
    const std::size_t found = text_.find(end, from);
    blank_to(found == std::string::npos ? found : found + end.size());
  }
  void blank_literal(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    blank_to(end + 1);
  }
  void blank_directive() {
    std::size_t end = text_.find('\n', at_);
    while (end != std::string::npos && text_[end - 1] == '\\') end = text_.find('\n', end + 1);
    blank_to(end);
  }

  std::string text_;
  std::size_t at_ = 0;
};

enum class Scope { Container, Function, Initializer };

/// What stands before a brace, since the last statement or brace: what kind of scope it opens, and the name.
class Heading {
 public:
  explicit Heading(const std::string& text) : text_(text) {
    static const std::regex label("^ ?(public|private|protected) ?:(?!:)");
    text_ = std::regex_replace(text_, label, "");
    drop_template_lists();
    if (text_.starts_with(' ')) text_.erase(0, 1);
    if (text_.ends_with(' ')) text_.pop_back();
  }

  Scope scope() const {
    static const std::regex container(
        "^(\\[\\[.*\\]\\] )?(inline |export )*(namespace|class|struct|union|enum|extern)\\b.*");
    if (std::regex_match(text_, container)) return Scope::Container;
    if (is_lambda()) return Scope::Function;
    const std::optional<std::size_t> parameters = parameter_list();
    const bool is_function = parameters && std::ranges::count(text_, '(') == std::ranges::count(text_, ')') &&
                             !is_member_initializer(*parameters);
    return is_function ? Scope::Function : Scope::Initializer;
  }

  bool is_device_code() const {
    return text_.find("__device__") != std::string::npos || text_.find("__global__") != std::string::npos;
  }

  std::string name() const {
    const std::optional<std::size_t> parameters = parameter_list();
    if (is_lambda() || !parameters) return "";
    static const std::regex test("^(TYPED_)?TEST(_[FP])?\\(.*\\)$");
    if (std::regex_match(text_, test)) return text_;
    static const std::regex last("((operator ?(\\(\\)|[^ (]+)|[~A-Za-z_0-9:<>]+)) ?$");
    std::smatch match;
    const std::string before = text_.substr(0, *parameters);
    return std::regex_search(before, match, last) ? match[1].str() : before;
  }

 private:
  void drop_template_lists() {
    static const std::regex keyword("\\btemplate\\s*<");
    if (text_.find("template") == std::string::npos) return;
    for (std::smatch match; std::regex_search(text_, match, keyword);) {
      std::size_t end = static_cast<std::size_t>(match.position() + match.length());
      for (int depth = 1; depth > 0 && end < text_.size(); ++end) {
        depth += text_[end] == '<' ? 1 : text_[end] == '>' && text_[end - 1] != '-' ? -1 : 0;
      }
      text_.erase(static_cast<std::size_t>(match.position()),
                  end - static_cast<std::size_t>(match.position()));
    }
  }

  bool is_lambda() const {
    static const std::regex lambda(".*\\](<[^>]*>)? ?(\\(.*\\))?( mutable| noexcept| ?-> ?[^;]*)*");
    return text_.find("operator[]") == std::string::npos && std::regex_match(text_, lambda);
  }

  /// Where a function's parameters begin; nothing where this is no function.
  std::optional<std::size_t> parameter_list() const {
    static const std::regex attribute("(alignas|noexcept|requires|decltype|explicit|__launch_bounds__) ?$");
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] != '=' && text_[i] != '(') continue;
      const std::string before = text_.substr(0, i);
      if (text_[i] == '=' && before.find("operator") == std::string::npos) return std::nullopt;
      if (text_[i] != '(') continue;
      const bool is_call_operator = before.ends_with("operator");
      if (before.find_first_not_of(' ') != std::string::npos && !is_call_operator &&
          !std::regex_search(before, attribute))
        return i;
      i = closing(i);
    }
    return std::nullopt;
  }
  std::size_t closing(std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; i < text_.size(); ++i) {
      depth += text_[i] == '(' ? 1 : text_[i] == ')' ? -1 : 0;
      if (depth == 0) return i;
    }
    return text_.size();
  }

  /// Whether this is the brace behind a member's name in a constructor's list.
  bool is_member_initializer(std::size_t parameters) const {
    const std::string behind = text_.substr(std::min(closing(parameters) + 1, text_.size()));
    static const std::regex list("^( noexcept)? ?:[^:].*[\\w>]$");
    return std::regex_match(behind, list);
  }

  std::string text_;
};

}  // namespace

std::vector<FunctionBody> function_bodies(const std::vector<std::string>& lines) {
  const CodeOnly code(lines);
  std::vector<FunctionBody> bodies;
  std::vector<Scope> scopes;
  std::size_t function_depth = 0;  // of the scope that is a function's body; 0: none is open
  std::size_t line = 1;
  std::string heading;
  for (const char c : code.text()) {
    if (c == '\n') ++line;
    if (c == '{') {
      Scope scope = Scope::Initializer;
      if (function_depth == 0) {
        const Heading before(heading);
        scope = before.scope();
        if (scope == Scope::Function) {
          function_depth = scopes.size() + 1;
          bodies.push_back({before.name(), line, line, before.is_device_code()});
        }
      }
      scopes.push_back(scope);
      if (scope != Scope::Initializer) heading.clear();
    } else if (c == '}' && !scopes.empty()) {
      if (scopes.size() == function_depth) {
        bodies.back().last_line = line;
        function_depth = 0;
      }
      if (scopes.back() == Scope::Initializer)
        heading += c;  // behind it a constructor's body may open
      else
        heading.clear();
      scopes.pop_back();
    } else if (c == ';') {
      heading.clear();
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      heading += c;
    } else if (!heading.ends_with(' ')) {
      heading += ' ';
    }
  }
  return bodies;
}

}  // namespace plenum::architecture
