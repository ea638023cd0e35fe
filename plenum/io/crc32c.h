#pragma once

#include <cstdint>
#include <string_view>

namespace plenum::io {

/// The CRC-32C (Castagnoli) of some bytes, a table look-up per byte: for short records.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace plenum::io
