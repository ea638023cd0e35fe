#include "plenum/report/line_reader.h"

#include <fstream>

namespace plenum::report {

bool read_lines(const std::string& path, base::FunctionRef<void(std::string_view line)> use) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::ifstream file(path, std::ios::binary);
  std::string buffer;         // begins with a line
  std::size_t num_bytes = 0;  // of it; what lies behind is padding
  while (file) {
    const std::size_t num_searched = num_bytes;
    buffer.resize(num_bytes + kPiece + kLinePadding);
    file.read(buffer.data() + num_bytes, kPiece);
    num_bytes += static_cast<std::size_t>(file.gcount());
    const std::string_view text(buffer.data(), num_bytes);
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n', num_searched); end != std::string_view::npos;
         end = text.find('\n', begin)) {
      use(text.substr(begin, end - begin));
      begin = end + 1;
    }
    buffer.erase(0, begin);
    num_bytes -= begin;
  }
  return num_bytes > 0;
}

}  // namespace plenum::report
