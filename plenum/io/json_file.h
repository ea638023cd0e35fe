#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace plenum::io {

/// The JSON value that a file holds. Throws UserError with file and line if it is not JSON.
nlohmann::json read_json_file(const std::string& path);

/// The element `key` of an object. Throws UserError, naming the file, if there is none.
const nlohmann::json& require_key(const nlohmann::json& object, const std::string& key,
                                  const std::string& path);

/// Gives an object the key "checksum": that of all its other keys, in alphabetical order at every level and
/// without spaces.
void add_checksum(nlohmann::json& object);
/// Takes that key from an object again. Returns whether it was there and right.
bool remove_checksum(nlohmann::json& object);

}  // namespace plenum::io
