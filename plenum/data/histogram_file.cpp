#include "plenum/data/histogram_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "plenum/base/check.h"

namespace plenum::data {

packing::LengthHistogram read_histogram_file(const std::string& path, packing::HistogramText::Form form) {
  std::error_code ignored;
  base::require(!std::filesystem::is_directory(path, ignored), "cannot read {}: it is a directory", path);
  std::ifstream file(path, std::ios::binary);
  base::require(file.is_open(), "cannot open {}: {}", path, std::strerror(errno));
  packing::HistogramText text(form, path);
  std::vector<char> chunk(std::size_t{1} << 18);
  while (file) {
    file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    text.feed(std::string_view(chunk.data(), static_cast<std::size_t>(file.gcount())));
  }
  base::require(!file.bad(), "cannot read {}: {}", path, std::strerror(errno));
  return text.finish();
}

}  // namespace plenum::data
