#pragma once

#include <string>

#include <toml++/toml.h>

namespace plenum::io {

/// The table that a TOML text is. Throws UserError with file and line where it is none.
toml::table parse_toml(const std::string& text, const std::string& path);

/// "file:line", for errors.
std::string toml_place(const std::string& path, const toml::source_region& region);

}  // namespace plenum::io
