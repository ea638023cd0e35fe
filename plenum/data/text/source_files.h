#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::data {

enum class TextFormat { Lines, JsonLines, Csv, Tsv };

/// One input file, as it was when the list was made.
struct SourceFile {
  std::string path;
  TextFormat format = TextFormat::Lines;
  std::uint64_t size_bytes = 0;  ///< on disk, compressed or not
  std::int64_t modified_ns = 0;  ///< since 1970
};

/// What input paths come to.
struct SourceFiles {
  std::vector<SourceFile> files;
  std::vector<std::string> skipped;  ///< files in directories whose ending says nothing

  std::uint64_t total_bytes() const;
};

/// Lists files as given and directories recursively in order of their paths, so that the order does not
/// depend on the file system. .txt, .jsonl, .csv and .tsv are known, each also with .gz or .zst behind. A
/// file of another name throws UserError when it was named itself, and is skipped when it lies in a
/// directory. So does a file that is listed twice.
SourceFiles list_source_files(const std::vector<std::string>& inputs);

}  // namespace plenum::data
