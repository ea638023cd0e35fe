#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plenum/base/options.h"

namespace plenum::io {

/// One `key = value` of a TOML file that belongs to a known option.
struct ConfigEntry {
  std::string section;
  std::string key;
  std::vector<std::string> values;
  std::string place;  ///< file:line, for errors
};

/// Whether keys may be those that options had before.
enum class FormerNames : std::uint8_t {
  Refused,   ///< the error says the new name
  Accepted,  ///< for files that an earlier version wrote
};

/// Reads a TOML file of `[section]` tables with `key = value` lines against the known option tables. An
/// unknown section or key, or a value of the wrong type, throws UserError with file and line and the nearest
/// known name. Entries have the names of today.
std::vector<ConfigEntry> read_config_file(const std::string& path,
                                          const std::vector<base::OptionTable>& known,
                                          FormerNames former_names = FormerNames::Refused);

/// Sets the options of `tables` to what entries say; those of other sections are passed over. Throws
/// UserError with file and line for a value that an option does not take.
void set_options(const std::vector<ConfigEntry>& entries, const std::vector<base::OptionTable>& tables);

/// Writes tables as a TOML file that read_config_file accepts; an option without a value is a comment.
std::string print_config(const std::vector<base::OptionTable>& tables);

}  // namespace plenum::io
