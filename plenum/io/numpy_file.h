#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "plenum/io/file.h"

namespace plenum::io {

/// A NumPy file (.npy, format 1.0) of a matrix of Float32, row by row, that grows by rows: how many there
/// are need not be known. Appears under its name whole or not at all. Throws UserError when a write fails.
class NumpyFile {
 public:
  NumpyFile(const std::string& path, std::size_t num_columns);

  /// Whole rows.
  void append(std::span<const float> rows);
  std::uint64_t num_rows() const { return num_rows_; }
  void commit();

 private:
  std::string path_;
  AtomicFile file_;
  std::size_t num_columns_;
  std::uint64_t num_rows_ = 0;
};

}  // namespace plenum::io
