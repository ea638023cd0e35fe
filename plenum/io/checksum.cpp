#include "plenum/io/checksum.h"

#include <xxhash.h>

#include "plenum/base/check.h"
#include "plenum/io/file.h"

namespace plenum::io {

Checksum::Checksum() : state_(XXH3_createState()) {
  base::check(state_ != nullptr && XXH3_64bits_reset(state_) == XXH_OK, "cannot create a checksum");
}

Checksum::~Checksum() {
  XXH3_freeState(state_);
}

void Checksum::update(std::span<const std::byte> bytes) {
  base::check(XXH3_64bits_update(state_, bytes.data(), bytes.size()) == XXH_OK, "cannot update a checksum");
}

void Checksum::update(std::string_view text) {
  update(std::as_bytes(std::span(text.data(), text.size())));
}

std::uint64_t Checksum::value() const {
  return XXH3_64bits_digest(state_);
}

std::uint64_t checksum(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

std::string format_checksum(std::uint64_t value) {
  return fmt::format("xxh3:{:016x}", value);
}

std::string file_checksum(const std::string& path) {
  const MappedFile file(path);
  return format_checksum(XXH3_64bits(file.bytes().data(), file.bytes().size()));
}

}  // namespace plenum::io
