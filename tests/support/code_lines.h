#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace plenum::test {

/// Lines of ``` blocks, with lines that end in a backslash joined.
inline std::vector<std::string> code_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  bool in_block = false;
  std::string joined;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("```")) {
      in_block = !in_block;
      continue;
    }
    if (!in_block) continue;
    joined += line;
    if (joined.ends_with('\\')) {
      joined.back() = ' ';
      continue;
    }
    lines.push_back(joined);
    joined.clear();
  }
  return lines;
}

}  // namespace plenum::test
