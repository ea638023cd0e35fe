#include "plenum/io/json_file.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/io/checksum.h"
#include "plenum/io/file.h"

namespace plenum::io {
namespace {

constexpr const char* kChecksum = "checksum";

}  // namespace

nlohmann::json read_json_file(const std::string& path) {
  const std::string text = read_file(path);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    base::fail("{}:{}: this is not JSON", path, std::count(text.begin(), end, '\n') + 1);
  } catch (const nlohmann::json::exception& error) {  // a number that no type holds
    base::fail("{}: {}", path, error.what());
  }
}

const nlohmann::json& require_key(const nlohmann::json& object, const std::string& key,
                                  const std::string& path) {
  base::require(object.is_object() && object.contains(key), "{}: the key \"{}\" is missing", path, key);
  return object.at(key);
}

void add_checksum(nlohmann::json& object) {
  object[kChecksum] = format_checksum(checksum(object.dump()));
}

bool remove_checksum(nlohmann::json& object) {
  const nlohmann::json given = object.value(kChecksum, nlohmann::json());
  object.erase(kChecksum);
  return given == format_checksum(checksum(object.dump()));
}

}  // namespace plenum::io
