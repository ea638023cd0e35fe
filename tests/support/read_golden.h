#pragma once

#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

namespace plenum::test {

/// A JSON file of tests/golden.
inline nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(std::string(PLENUM_SOURCE_DIR) + "/tests/golden/" + name);
  return nlohmann::json::parse(file);
}

}  // namespace plenum::test
