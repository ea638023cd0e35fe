#include "plenum/data/batches/histogram_file.h"

#include <string_view>
#include <vector>

#include "plenum/io/compressed_input.h"

namespace plenum::data {

packing::LengthHistogram read_histogram_file(const std::string& path, packing::HistogramText::Form form) {
  io::CompressedInput file(path);
  packing::HistogramText text(form, path);
  std::vector<char> chunk(std::size_t{1} << 18);
  while (const std::size_t count = file.read(chunk.data(), chunk.size())) {
    text.feed(std::string_view(chunk.data(), count));
  }
  return text.finish();
}

}  // namespace plenum::data
