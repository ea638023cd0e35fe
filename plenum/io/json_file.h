#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace plenum::io {

/// The JSON value that a file holds. Throws UserError with file and line if it is not JSON.
nlohmann::json read_json_file(const std::string& path);

/// The element `key` of an object. Throws UserError, naming the file, if there is none.
const nlohmann::json& require_key(const nlohmann::json& object, const std::string& key,
                                  const std::string& path);

}  // namespace plenum::io
