#pragma once

#include <cstdint>
#include <string>

namespace plenum::io {

/// A file that was written, as a table of contents records it.
struct FileRecord {
  std::string name;
  std::uint64_t size_bytes = 0;
  std::string checksum;  ///< as format_checksum writes it

  friend bool operator==(const FileRecord&, const FileRecord&) = default;
};

}  // namespace plenum::io
