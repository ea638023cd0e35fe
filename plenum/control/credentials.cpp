#include "plenum/control/credentials.h"

#include <cstring>

#include <sodium.h>

#include "plenum/base/check.h"

namespace plenum::control {
namespace {

static_assert(crypto_auth_BYTES == sizeof(Mac) && crypto_auth_KEYBYTES == sizeof(Key));
static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == sizeof(Key));
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == FrameCipher::kOverheadBytes);

/// libsodium asks to be told before its first use; telling it again costs nothing.
void begin() {
  base::require(::sodium_init() >= 0, "libsodium finds no source of random numbers on this machine");
}

const unsigned char* data_of(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

using CipherNonce = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;

CipherNonce nonce_of(std::uint64_t frame_index) {
  CipherNonce nonce{};
  std::memcpy(nonce.data(), &frame_index, sizeof frame_index);
  return nonce;
}

}  // namespace

void fill_random(std::uint8_t* bytes, std::size_t num_bytes) {
  begin();
  ::randombytes_buf(bytes, num_bytes);
}

std::string make_secret() {
  return to_hex(as_bytes(random_array<Key>()));
}

Key run_key(std::string_view secret, const RunId& run) {
  begin();
  // A secret of any length becomes a key.
  Key key;
  ::crypto_generichash(key.data(), key.size(), data_of(secret), secret.size(), nullptr, 0);
  return derive_key(key, std::string("plenum run ") + std::string(as_bytes(run)));
}

Key derive_key(const Key& key, std::string_view purpose) {
  Key derived;
  ::crypto_generichash(derived.data(), derived.size(), data_of(purpose), purpose.size(), key.data(),
                       key.size());
  return derived;
}

Mac make_mac(const Key& key, std::string_view bytes) {
  Mac mac;
  ::crypto_auth(mac.data(), data_of(bytes), bytes.size(), key.data());
  return mac;
}

bool is_right_mac(const Key& key, std::string_view bytes, const Mac& mac) {
  return ::crypto_auth_verify(mac.data(), data_of(bytes), bytes.size(), key.data()) == 0;
}

std::string to_hex(std::string_view bytes) {
  std::string text(2 * bytes.size() + 1, '\0');
  ::sodium_bin2hex(text.data(), text.size(), data_of(bytes), bytes.size());
  text.pop_back();
  return text;
}

bool from_hex(std::string_view text, std::uint8_t* bytes, std::size_t num_bytes) {
  std::size_t written = 0;
  return text.size() == 2 * num_bytes &&
         ::sodium_hex2bin(bytes, num_bytes, text.data(), text.size(), nullptr, &written, nullptr) == 0 &&
         written == num_bytes;
}

void FrameCipher::seal(std::string_view header, std::string_view body, std::string& out) {
  const CipherNonce nonce = nonce_of(num_frames_++);
  const std::size_t start = out.size();
  out.resize(start + body.size() + kOverheadBytes);
  ::crypto_aead_chacha20poly1305_ietf_encrypt(reinterpret_cast<unsigned char*>(out.data()) + start, nullptr,
                                              data_of(body), body.size(), data_of(header), header.size(),
                                              nullptr, nonce.data(), key_.data());
}

bool FrameCipher::open(std::string_view header, std::string_view sealed, std::string& body) {
  body.clear();
  if (sealed.size() < kOverheadBytes) return false;
  const CipherNonce nonce = nonce_of(num_frames_);
  body.resize(sealed.size() - kOverheadBytes);
  if (::crypto_aead_chacha20poly1305_ietf_decrypt(reinterpret_cast<unsigned char*>(body.data()), nullptr,
                                                  nullptr, data_of(sealed), sealed.size(), data_of(header),
                                                  header.size(), nonce.data(), key_.data()) != 0) {
    body.clear();
    return false;
  }
  ++num_frames_;
  return true;
}

}  // namespace plenum::control
