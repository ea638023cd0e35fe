#include "plenum/io/numpy_file.h"

#include <bit>
#include <string_view>

#include <fmt/format.h>

#include "plenum/base/check.h"

namespace plenum::io {
namespace {

static_assert(std::endian::native == std::endian::little, "the header says little-endian");

// Two lines of 64 bytes, with room for any number of rows and columns: it is written again at the end.
constexpr std::size_t kHeaderBytes = 128;

/// Magic, version 1.0, the number of bytes that follow, and a Python dictionary filled up with spaces.
std::string header_of(std::uint64_t num_rows, std::size_t num_columns) {
  constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
  constexpr std::size_t kRest = kHeaderBytes - kMagic.size() - 2;
  std::string header(kMagic);
  header += static_cast<char>(kRest & 0xFF);
  header += static_cast<char>(kRest >> 8);
  header +=
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", num_rows, num_columns);
  header.resize(kHeaderBytes - 1, ' ');
  return header + '\n';
}

}  // namespace

NumpyFile::NumpyFile(const std::string& path, std::size_t num_columns)
    : path_(path), file_(path), num_columns_(num_columns) {
  base::check(num_columns > 0, "a matrix needs columns: {}", path);
  file_.write(header_of(0, num_columns));
}

void NumpyFile::append(std::span<const float> rows) {
  base::check(rows.size() % num_columns_ == 0, "{} numbers are no rows of {}: {}", rows.size(), num_columns_,
              path_);
  file_.write(std::as_bytes(rows));
  num_rows_ += rows.size() / num_columns_;
}

void NumpyFile::commit() {
  file_.overwrite(0, header_of(num_rows_, num_columns_));
  file_.commit();
}

}  // namespace plenum::io
