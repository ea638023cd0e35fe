#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace plenum::control {

/// Appends values to bytes, numbers in little-endian order.
class ByteWriter {
 public:
  template <std::integral Number>
  ByteWriter& number(Number value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
    return *this;
  }
  ByteWriter& bytes(std::string_view text) {
    bytes_.append(text);
    return *this;
  }
  /// With its length before it.
  ByteWriter& text(std::string_view text) {
    return number(static_cast<std::uint32_t>(text.size())).bytes(text);
  }
  /// In a field of a fixed size, with zeros behind it; the end of what is too long is left out.
  ByteWriter& field(std::string_view text, std::size_t num_bytes) {
    text = text.substr(0, num_bytes);
    bytes_.append(text).append(num_bytes - text.size(), '\0');
    return *this;
  }

  const std::string& result() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Takes values from bytes. Once something is not there, is_good() is false and everything is empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <std::integral Number>
  Number number() {
    const std::string_view taken = bytes(sizeof(Number));
    Number value = 0;
    if (is_good_) std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }
  std::string_view bytes(std::size_t num_bytes) {
    is_good_ = is_good_ && num_bytes <= rest_.size();
    if (!is_good_) return {};
    const std::string_view taken = rest_.substr(0, num_bytes);
    rest_.remove_prefix(num_bytes);
    return taken;
  }
  /// Not there if it is longer than `most_bytes`.
  std::string_view text(std::size_t most_bytes) {
    const auto num_bytes = number<std::uint32_t>();
    is_good_ = is_good_ && num_bytes <= most_bytes;
    return bytes(num_bytes);
  }
  std::string_view field(std::size_t num_bytes) {
    const std::string_view padded = bytes(num_bytes);
    return padded.substr(0, padded.find('\0'));
  }
  template <std::size_t kSize>
  std::array<std::uint8_t, kSize> array() {
    const std::string_view taken = bytes(kSize);
    std::array<std::uint8_t, kSize> result{};
    if (is_good_) std::memcpy(result.data(), taken.data(), kSize);
    return result;
  }

  bool is_good() const { return is_good_; }
  std::size_t num_left() const { return rest_.size(); }
  /// Whether everything was there and nothing is left.
  bool is_finished() const { return is_good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool is_good_ = true;
};

}  // namespace plenum::control
