#pragma once

#include <cstddef>
#include <cstdint>

namespace plenum::data {

/// A place in the input between two blocks.
struct SourcePosition {
  std::size_t file_index = 0;
  std::uint64_t offset = 0;         ///< in the unpacked bytes of the file
  std::uint64_t line = 0;           ///< lines before it in the file
  std::uint64_t earlier_bytes = 0;  ///< sizes on disk of the files before this one
  bool inside_document = false;
  bool inside_sentence = false;
};

}  // namespace plenum::data
