#include "tests/architecture/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace plenum::architecture {

namespace fs = std::filesystem;

std::vector<SourceFile> source_files(const std::string& folder) {
  const fs::path root(PLENUM_SOURCE_DIR);
  std::vector<SourceFile> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
    SourceFile file{fs::relative(entry.path(), root).string(), {}};
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) file.lines.push_back(line);
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

std::string project_file(const std::string& path) {
  std::ifstream stream(fs::path(PLENUM_SOURCE_DIR) / path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string code_of(const std::string& line) {
  std::string code;
  bool in_string = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (in_string) {
      if (line[i] == '\\')
        ++i;
      else if (line[i] == '"')
        in_string = false;
      continue;
    }
    if (line[i] == '"') {
      in_string = true;
    } else if (line[i] == '/' && i + 1 < line.size() && line[i + 1] == '/') {
      break;
    } else {
      code += line[i];
    }
  }
  return code;
}

}  // namespace plenum::architecture
