#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace plenum::io {

/// XXH3 in 64 bits, over bytes that arrive in pieces. Written as `xxh3:0123456789abcdef`. Guards against
/// damage, not against malice.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  std::uint64_t value() const;

 private:
  XXH3_state_s* state_;
};

std::uint64_t checksum(std::string_view text);
std::string format_checksum(std::uint64_t value);

/// The checksum of a whole file, as text.
std::string file_checksum(const std::string& path);

}  // namespace plenum::io
