#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plenum::base {

/// One setting of a component: what it is called, what it means, and how text becomes its typed value. The
/// same table stands behind flags, TOML files, --print-config and help, so they cannot disagree.
struct Option {
  enum class Kind { Flag, Integer, Number, Text, Choice, TextList };

  std::string name;         ///< `max-length`: the flag is --max-length, the key in a file max-length
  std::string help;         ///< one line, no full stop
  std::string placeholder;  ///< what help shows for the value: N, FILE, DIR
  Kind kind = Kind::Text;
  bool positional = false;
  std::vector<std::string> choices;  ///< for Kind::Choice
  std::string former_name = {};      ///< under which it was known before, if it was
  std::function<void(const std::vector<std::string>&)>
      set;                                        ///< throws UserError; lists get all values, others one
  std::function<std::vector<std::string>()> get;  ///< the value as text; an unset optional gives nothing
};

/// The settings of one component. Its name is the section in a TOML file. Borrows the variables it is bound
/// to.
class OptionTable {
 public:
  explicit OptionTable(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  const std::vector<Option>& options() const { return options_; }
  const Option* find(std::string_view name) const;
  /// A table of those options alone that `is_meant` holds for.
  OptionTable only(const std::function<bool(const Option&)>& is_meant) const;
  /// The option that was called so before.
  const Option* find_former(std::string_view former_name) const;

  Option& add(std::string name, bool& value, std::string help);
  Option& add(std::string name, std::int64_t& value, std::int64_t minimum, std::int64_t maximum,
              std::string help);
  /// An integer that may be absent.
  Option& add(std::string name, std::optional<std::int64_t>& value, std::int64_t minimum,
              std::int64_t maximum, std::string help);
  Option& add(std::string name, double& value, double minimum, double maximum, std::string help);
  /// A number that may be absent.
  Option& add(std::string name, std::optional<double>& value, double minimum, double maximum,
              std::string help);
  /// Accepts 0.005 and 0.5%.
  Option& add_fraction(std::string name, double& value, std::string help);
  Option& add(std::string name, std::string& value, std::string placeholder, std::string help);
  Option& add(std::string name, std::vector<std::string>& values, std::string placeholder, std::string help);

  /// A value out of a closed list, held as an enum.
  template <typename Enum>
  Option& add_choice(std::string name, Enum& value, std::vector<std::pair<std::string, Enum>> choices,
                     std::string help);

  /// A value with a text of its own: `parse(text, name)` throws UserError, `format(value)` writes what it
  /// reads.
  template <typename Value, typename Parse, typename Format>
  Option& add_parsed(std::string name, Value& value, std::string placeholder, std::string help, Parse parse,
                     Format format);
  /// One that may be absent.
  template <typename Value, typename Parse, typename Format>
  Option& add_parsed(std::string name, std::optional<Value>& value, std::string placeholder, std::string help,
                     Parse parse, Format format);

 private:
  Option& add_option(Option option);

  std::string name_;
  std::vector<Option> options_;
};

/// The entry of `known` nearest to `name` by edit distance, if near enough to be a slip of the fingers.
std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& known);

/// "; did you mean 'max-length'?" or nothing.
std::string suggest_name(std::string_view name, const std::vector<std::string>& known);

/// Throws UserError: `value` is not one of the choices of `name`.
[[noreturn]] void fail_choice(const std::string& name, const std::string& value,
                              const std::vector<std::string>& choices);

template <typename Value, typename Parse, typename Format>
Option& OptionTable::add_parsed(std::string name, Value& value, std::string placeholder, std::string help,
                                Parse parse, Format format) {
  Option option{.name = std::move(name),
                .help = std::move(help),
                .placeholder = std::move(placeholder),
                .kind = Option::Kind::Text,
                .choices = {},
                .set = {},
                .get = {}};
  option.set = [&value, key = option.name, parse](const std::vector<std::string>& given) {
    value = parse(given.front(), key);
  };
  option.get = [&value, format]() -> std::vector<std::string> { return {format(value)}; };
  return add_option(std::move(option));
}

template <typename Value, typename Parse, typename Format>
Option& OptionTable::add_parsed(std::string name, std::optional<Value>& value, std::string placeholder,
                                std::string help, Parse parse, Format format) {
  Option& option = add_parsed<std::optional<Value>>(std::move(name), value, std::move(placeholder),
                                                    std::move(help), parse, [](const auto&) { return ""; });
  option.get = [&value, format]() -> std::vector<std::string> {
    if (!value) return {};
    return {format(*value)};
  };
  return option;
}

template <typename Enum>
Option& OptionTable::add_choice(std::string name, Enum& value,
                                std::vector<std::pair<std::string, Enum>> choices, std::string help) {
  Option option{.name = std::move(name),
                .help = std::move(help),
                .placeholder = "NAME",
                .kind = Option::Kind::Choice,
                .choices = {},
                .set = {},
                .get = {}};
  for (const auto& [text, unused] : choices) option.choices.push_back(text);
  option.set = [&value, choices, key = option.name,
                texts = option.choices](const std::vector<std::string>& given) {
    for (const auto& [text, meaning] : choices) {
      if (text == given.front()) {
        value = meaning;
        return;
      }
    }
    fail_choice(key, given.front(), texts);
  };
  option.get = [&value, choices]() -> std::vector<std::string> {
    for (const auto& [text, meaning] : choices) {
      if (meaning == value) return {text};
    }
    return {};
  };
  return add_option(std::move(option));
}

}  // namespace plenum::base
