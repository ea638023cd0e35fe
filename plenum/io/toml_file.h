#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::io {

struct TomlEntry;

/// A value of a TOML file and where it stands.
struct TomlValue {
  enum class Kind : std::uint8_t { Flag, Number, Text, List, Table, Date };

  Kind kind = Kind::Table;
  bool flag = false;
  double number = 0;  ///< whole ones, too
  std::string text;
  std::vector<TomlValue> list;
  std::vector<TomlEntry> table;
  std::string place;  ///< file:line, for errors
};

struct TomlEntry {
  std::string key;
  TomlValue value;
};

/// Throws UserError with file and line for what is not TOML.
TomlValue read_toml_file(const std::string& path);

/// Reads the keys of one table of a TOML file, whose names are known beforehand. Whatever is wrong is told in
/// a line by UserError: file, line, key and what stands there.
class TomlTable {
 public:
  /// Borrows the value. `name` is what messages call the table: "[device]". Throws UserError unless it is a
  /// table of known keys, naming the nearest one.
  TomlTable(const TomlValue& value, std::string name, std::initializer_list<std::string_view> known);

  /// The value of a key. Throws UserError where it is not there, not a number, not finite or out of [least,
  /// most].
  double number(std::string_view key, double least, double most) const;
  double number(std::string_view key, double least, double most, double otherwise) const;
  std::optional<double> optional_number(std::string_view key, double least, double most) const;
  /// A whole number.
  std::size_t count(std::string_view key, std::size_t least, std::size_t most) const;
  std::size_t count(std::string_view key, std::size_t least, std::size_t most, std::size_t otherwise) const;
  std::string text(std::string_view key) const;
  std::string text(std::string_view key, const std::string& otherwise) const;
  /// One of the given texts, by its index.
  std::size_t choice(std::string_view key, std::initializer_list<std::string_view> choices) const;

  /// Null where it is not there.
  const TomlValue* find(std::string_view key) const;
  const TomlValue& require(std::string_view key) const;
  /// The elements of a list; none where it is not there.
  const std::vector<TomlValue>& list(std::string_view key) const;
  const std::string& place() const { return value_->place; }

 private:
  const TomlValue* value_;
  std::string name_;
};

/// The number that a value is. Throws UserError, calling it `name`, unless it is one in [least, most].
double toml_number(const TomlValue& value, std::string_view name, double least, double most);

}  // namespace plenum::io
