#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plenum::io {

/// Writes all of `bytes` where the descriptor stands. Throws UserError naming `path` when that fails: a full
/// disk.
void write_all(int descriptor, std::string_view bytes, const std::string& path);

/// The same at `offset`, without moving the descriptor.
void write_all_at(int descriptor, std::uint64_t offset, std::string_view bytes, const std::string& path);

}  // namespace plenum::io
