#include "plenum/io/config_file.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/io/file.h"
#include "plenum/io/toml_parse.h"

namespace plenum::io {
namespace {

using base::Option;
using base::OptionTable;

/// The text of a scalar if its TOML type suits the option; nothing otherwise. A number may stand where text
/// is wanted, which can be one: steps = 20000.
std::optional<std::string> scalar_text(const toml::node& node, Option::Kind kind) {
  if (const auto* text = node.as_string()) {
    const bool takes_text = kind != Option::Kind::Flag && kind != Option::Kind::Integer;
    return takes_text ? std::optional(text->get()) : std::nullopt;
  }
  if (const auto* flag = node.as_boolean()) {
    return kind == Option::Kind::Flag ? std::optional<std::string>(flag->get() ? "true" : "false")
                                      : std::nullopt;
  }
  if (const auto* integer = node.as_integer()) {
    const bool takes_integer =
        kind == Option::Kind::Integer || kind == Option::Kind::Number || kind == Option::Kind::Text;
    return takes_integer ? std::optional(fmt::format("{}", integer->get())) : std::nullopt;
  }
  if (const auto* number = node.as_floating_point()) {
    const bool takes_number = kind == Option::Kind::Number || kind == Option::Kind::Text;
    return takes_number ? std::optional(fmt::format("{}", number->get())) : std::nullopt;
  }
  return std::nullopt;
}

std::string_view kind_name(Option::Kind kind) {
  switch (kind) {
    case Option::Kind::Flag:
      return "true or false";
    case Option::Kind::Integer:
      return "a whole number";
    case Option::Kind::Number:
      return "a number";
    case Option::Kind::Text:
    case Option::Kind::Choice:
      return "a string";
    case Option::Kind::TextList:
      return "a list of strings";
  }
  return "a value";
}

std::vector<std::string> values_of(const toml::node& node, const Option& option, const std::string& place) {
  std::vector<std::string> values;
  const toml::array* list = node.as_array();
  if (option.kind == Option::Kind::TextList && list != nullptr) {
    for (const toml::node& element : *list) {
      const std::optional<std::string> text = scalar_text(element, option.kind);
      base::require(text.has_value(), "{}: {} must be {}", place, option.name, kind_name(option.kind));
      values.push_back(*text);
    }
    return values;
  }
  const std::optional<std::string> text = scalar_text(node, option.kind);
  base::require(text.has_value(), "{}: {} must be {}", place, option.name, kind_name(option.kind));
  return {*text};
}

const OptionTable* find_table(const std::vector<OptionTable>& known, std::string_view name) {
  for (const OptionTable& table : known) {
    if (table.name() == name) return &table;
  }
  return nullptr;
}

std::vector<std::string> table_names(const std::vector<OptionTable>& known) {
  std::vector<std::string> names;
  for (const OptionTable& table : known) names.push_back(table.name());
  return names;
}

std::vector<std::string> option_names(const OptionTable& table) {
  std::vector<std::string> names;
  for (const Option& option : table.options()) names.push_back(option.name);
  return names;
}

/// The option of a key. Throws UserError if there is none.
const Option& option_of(const std::string& key, const OptionTable& table, FormerNames former_names,
                        const std::string& place) {
  if (const Option* option = table.find(key)) return *option;
  const Option* renamed = table.find_former(key);
  if (renamed == nullptr) {
    base::fail("{}: unknown key '{}' in section '{}'{}", place, key, table.name(),
               base::suggest_name(key, option_names(table)));
  }
  base::require(former_names == FormerNames::Accepted, "{}: the key '{}' in section '{}' is now called '{}'",
                place, key, table.name(), renamed->name);
  return *renamed;
}

/// A JSON string is a TOML basic string too.
std::string quote(const std::string& text) {
  return nlohmann::json(text).dump();
}

std::string print_value(const Option& option, const std::vector<std::string>& values) {
  const bool quoted = option.kind != Option::Kind::Flag && option.kind != Option::Kind::Integer &&
                      option.kind != Option::Kind::Number;
  std::vector<std::string> printed;
  for (const std::string& value : values) printed.push_back(quoted ? quote(value) : value);
  if (option.kind == Option::Kind::TextList) return fmt::format("[{}]", fmt::join(printed, ", "));
  return printed.front();
}

}  // namespace

std::vector<ConfigEntry> read_config_file(const std::string& path, const std::vector<OptionTable>& known,
                                          FormerNames former_names) {
  const toml::table root = parse_toml(read_file(path), path);
  std::vector<ConfigEntry> entries;
  for (const auto& [section, node] : root) {
    const std::string place = toml_place(path, node.source());
    const std::string section_name(section.str());
    const toml::table* keys = node.as_table();
    base::require(keys != nullptr, "{}: key '{}' stands outside a section; sections are {}", place,
                  section_name, fmt::join(table_names(known), ", "));
    const OptionTable* table = find_table(known, section_name);
    if (table == nullptr) {
      base::fail("{}: unknown section '{}'{}", place, section_name,
                 base::suggest_name(section_name, table_names(known)));
    }
    for (const auto& [key, value] : *keys) {
      const std::string key_place = toml_place(path, key.source());
      const Option& option = option_of(std::string(key.str()), *table, former_names, key_place);
      entries.push_back({section_name, option.name, values_of(value, option, key_place), key_place});
    }
  }
  return entries;
}

void set_options(const std::vector<ConfigEntry>& entries, const std::vector<OptionTable>& tables) {
  for (const ConfigEntry& entry : entries) {
    const auto table = std::ranges::find(tables, entry.section, &OptionTable::name);
    if (table == tables.end()) continue;
    try {
      table->find(entry.key)->set(entry.values);
    } catch (const base::UserError& error) {
      base::fail("{}: {}", entry.place, error.what());
    }
  }
}

std::string print_config(const std::vector<OptionTable>& tables) {
  std::string text;
  for (const OptionTable& table : tables) {
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", table.name());
    for (const Option& option : table.options()) {
      const std::vector<std::string> values = option.get();
      const bool is_list = option.kind == Option::Kind::TextList;
      text += fmt::format("# {}\n", option.help);
      if (values.empty() && !is_list) {
        text += fmt::format("# {} =\n", option.name);
      } else {
        text += fmt::format("{} = {}\n", option.name, print_value(option, values));
      }
    }
  }
  return text;
}

}  // namespace plenum::io
