#pragma once

#include <string>
#include <vector>

namespace plenum::architecture {

/// A file of the project, by its path below the root, with its lines.
struct SourceFile {
  std::string path;
  std::vector<std::string> lines;
};

/// The C++ and CUDA files below `folder` of the project.
std::vector<SourceFile> source_files(const std::string& folder);

/// The text of one file of the project.
std::string project_file(const std::string& path);

/// `line` without string literals and without what follows `//`.
std::string code_of(const std::string& line);

}  // namespace plenum::architecture
