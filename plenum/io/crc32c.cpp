#include "plenum/io/crc32c.h"

#include <array>

namespace plenum::io {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // bits reversed

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ ((remainder & 1) != 0 ? kPolynomial : 0);
    table[byte] = remainder;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t remainder = ~std::uint32_t{0};
  for (const char byte : bytes)
    remainder = remainder >> 8 ^ kTable[(remainder ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~remainder;
}

}  // namespace plenum::io
