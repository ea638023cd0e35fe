#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace plenum::control {

using Nonce = std::array<std::uint8_t, 32>;  ///< random, used once
using Mac = std::array<std::uint8_t, 32>;    ///< shows that its maker knows a key
using Key = std::array<std::uint8_t, 32>;
using RunId = std::array<std::uint8_t, 16>;  ///< tells two starts of runs apart that have the same secret

template <std::size_t kSize>
std::string_view as_bytes(const std::array<std::uint8_t, kSize>& array) {
  return {reinterpret_cast<const char*>(array.data()), kSize};
}

/// Overwrites the array with bytes that nobody can guess.
void fill_random(std::uint8_t* bytes, std::size_t num_bytes);

template <typename Array>
Array random_array() {
  Array array;
  fill_random(array.data(), array.size());
  return array;
}

/// A new secret: 64 hexadecimal digits.
std::string make_secret();

/// The key of one start of a run.
Key run_key(std::string_view secret, const RunId& run);

/// A key for one purpose, from which neither `key` nor the key of another purpose follows.
Key derive_key(const Key& key, std::string_view purpose);

Mac make_mac(const Key& key, std::string_view bytes);
/// Takes the same time for every wrong MAC.
bool is_right_mac(const Key& key, std::string_view bytes, const Mac& mac);

/// The hexadecimal digits of bytes, and back; false where `text` is anything but twice as many digits.
std::string to_hex(std::string_view bytes);
bool from_hex(std::string_view text, std::uint8_t* bytes, std::size_t num_bytes);

/// Encrypts or decrypts the frames of one direction of one connection (ChaCha20-Poly1305). Frames are
/// counted: one that was changed, left out, repeated or moved does not open.
class FrameCipher {
 public:
  static constexpr std::size_t kOverheadBytes = 16;

  explicit FrameCipher(const Key& key) : key_(key) {}

  /// Appends the sealed body to `out`; `header` stays readable, and is as safe from change.
  void seal(std::string_view header, std::string_view body, std::string& out);
  /// Overwrites `body`. Returns false, and leaves nothing to use in it, if the frame is not what was sealed.
  bool open(std::string_view header, std::string_view sealed, std::string& body);

 private:
  Key key_;
  std::uint64_t num_frames_ = 0;
};

}  // namespace plenum::control
