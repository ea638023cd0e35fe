#pragma once

#include <cstddef>
#include <cstdint>

namespace plenum::data {

/// How many bytes a token takes in a token file, chosen by vocabulary size as Megatron-LM does.
enum class TokenWidth : std::uint8_t { Two = 2, Four = 4 };

constexpr TokenWidth token_width_for(std::size_t vocabulary_size) {
  return vocabulary_size < 65500 ? TokenWidth::Two : TokenWidth::Four;
}

constexpr std::size_t bytes_of(TokenWidth width) {
  return static_cast<std::size_t>(width);
}

}  // namespace plenum::data
