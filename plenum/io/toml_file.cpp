#include "plenum/io/toml_file.h"

#include <cmath>

#include "plenum/base/check.h"
#include "plenum/base/options.h"
#include "plenum/io/file.h"
#include "plenum/io/toml_parse.h"

namespace plenum::io {
namespace {

TomlValue value_of(const toml::node& node, const std::string& path) {
  TomlValue value;
  value.place = toml_place(path, node.source());
  if (const auto* table = node.as_table()) {
    for (const auto& [key, child] : *table) {
      value.table.push_back({std::string(key.str()), value_of(child, path)});
      // A table that dotted headers imply has no place of its own.
      if (!child.source().begin) value.table.back().value.place = toml_place(path, key.source());
    }
  } else if (const auto* list = node.as_array()) {
    value.kind = TomlValue::Kind::List;
    for (const toml::node& child : *list) value.list.push_back(value_of(child, path));
  } else if (const auto* text = node.as_string()) {
    value.kind = TomlValue::Kind::Text;
    value.text = text->get();
  } else if (const auto* flag = node.as_boolean()) {
    value.kind = TomlValue::Kind::Flag;
    value.flag = flag->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = TomlValue::Kind::Number;
    value.number = static_cast<double>(integer->get());
  } else if (const auto* number = node.as_floating_point()) {
    value.kind = TomlValue::Kind::Number;
    value.number = number->get();
  } else {
    value.kind = TomlValue::Kind::Date;
  }
  return value;
}

}  // namespace

TomlValue read_toml_file(const std::string& path) {
  return value_of(parse_toml(read_file(path), path), path);
}

double toml_number(const TomlValue& value, std::string_view name, double least, double most) {
  base::require(value.kind == TomlValue::Kind::Number, "{}: {} must be a number", value.place, name);
  base::require(value.number >= least && value.number <= most, "{}: {} must lie between {:g} and {:g}: {:g}",
                value.place, name, least, most, value.number);
  return value.number;
}

TomlTable::TomlTable(const TomlValue& value, std::string name, std::initializer_list<std::string_view> known)
    : value_(&value), name_(std::move(name)) {
  base::require(value.kind == TomlValue::Kind::Table, "{}: {} must be a table", value.place, name_);
  const std::vector<std::string> names(known.begin(), known.end());
  for (const TomlEntry& entry : value.table) {
    bool is_known = false;
    for (const std::string_view key : known) is_known = is_known || entry.key == key;
    if (!is_known) {
      base::fail("{}: unknown key '{}' in {}{}", entry.value.place, entry.key, name_,
                 base::suggest_name(entry.key, names));
    }
  }
}

const TomlValue* TomlTable::find(std::string_view key) const {
  for (const TomlEntry& entry : value_->table) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

const TomlValue& TomlTable::require(std::string_view key) const {
  const TomlValue* value = find(key);
  base::require(value != nullptr, "{}: {} lacks the key '{}'", place(), name_, key);
  return *value;
}

double TomlTable::number(std::string_view key, double least, double most) const {
  return toml_number(require(key), key, least, most);
}

double TomlTable::number(std::string_view key, double least, double most, double otherwise) const {
  return optional_number(key, least, most).value_or(otherwise);
}

std::optional<double> TomlTable::optional_number(std::string_view key, double least, double most) const {
  const TomlValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  return toml_number(*value, key, least, most);
}

std::size_t TomlTable::count(std::string_view key, std::size_t least, std::size_t most) const {
  const double value = number(key, static_cast<double>(least), static_cast<double>(most));
  base::require(value == std::floor(value), "{}: {} must be a whole number: {:g}", require(key).place, key,
                value);
  return static_cast<std::size_t>(value);
}

std::size_t TomlTable::count(std::string_view key, std::size_t least, std::size_t most,
                             std::size_t otherwise) const {
  return find(key) == nullptr ? otherwise : count(key, least, most);
}

std::string TomlTable::text(std::string_view key) const {
  const TomlValue& value = require(key);
  base::require(value.kind == TomlValue::Kind::Text && !value.text.empty(), "{}: {} must be a text in quotes",
                value.place, key);
  return value.text;
}

std::string TomlTable::text(std::string_view key, const std::string& otherwise) const {
  return find(key) == nullptr ? otherwise : text(key);
}

std::size_t TomlTable::choice(std::string_view key, std::initializer_list<std::string_view> choices) const {
  const std::string value = text(key);
  std::size_t index = 0;
  for (const std::string_view choice : choices) {
    if (choice == value) return index;
    ++index;
  }
  const std::vector<std::string> names(choices.begin(), choices.end());
  base::fail("{}: {} must be one of {}: '{}'", require(key).place, key, fmt::join(names, ", "), value);
}

const std::vector<TomlValue>& TomlTable::list(std::string_view key) const {
  static const std::vector<TomlValue> kNone;
  const TomlValue* value = find(key);
  if (value == nullptr) return kNone;
  base::require(value->kind == TomlValue::Kind::List, "{}: {} must be a list", value->place, key);
  return value->list;
}

}  // namespace plenum::io
