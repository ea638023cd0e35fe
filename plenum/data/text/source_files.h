#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::data {

enum class TextFormat { Lines, JsonLines, Csv, Tsv };

/// The format that a file's name announces, compressed or not; nothing if its ending is not known.
std::optional<TextFormat> format_of(std::string_view path);

/// One input file, as it was when the list was made.
struct SourceFile {
  std::string path;
  TextFormat format = TextFormat::Lines;
  std::uint64_t size_bytes = 0;  ///< on disk, compressed or not
  std::int64_t modified_ns = 0;  ///< since 1970
};

/// What input paths come to, and what in their directories is not read.
struct SourceFiles {
  std::vector<SourceFile> files;
  std::vector<std::string> unknown;       ///< files whose ending says nothing
  std::vector<std::string> vocabularies;  ///< vocab.txt of tokenizers and datasets
  std::vector<std::string> dangling;      ///< links that lead nowhere
  std::vector<std::string> special;       ///< pipes, sockets and devices
  std::vector<std::string> repeated;      ///< other names of files and folders that are read already

  std::uint64_t total_bytes() const;
  /// A line for each kind of thing that is not read, for people.
  std::vector<std::string> remarks() const;
};

/// Lists files as given and directories recursively in order of their paths, so that the order does not
/// depend on the file system. Links to files and folders are followed, in a circle once; a file with several
/// names is read by the first. .txt, .jsonl, .csv and .tsv are known, each also with .gz or .zst behind. A
/// file of another name throws UserError when it was named itself, and is skipped when it lies in a
/// directory. So does a file that is given twice.
SourceFiles list_source_files(const std::vector<std::string>& inputs);

/// Throws UserError naming the first file that is not of the size and time that the list has: one that is
/// still being written.
void require_unchanged(const std::vector<SourceFile>& files);

}  // namespace plenum::data
