#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plenum/base/ids.h"
#include "plenum/control/credentials.h"

namespace plenum::control {

/// Two ranks whose numbers differ here do not understand each other.
inline constexpr std::uint16_t kProtocolVersion = 2;

// How a rank and rank 0 show each other that they know the secret of the same run, without showing it. All
// three texts have fixed sizes, so that nobody's length is believed.

/// The first word, by rank 0, to whoever connects.
struct Hello {
  static constexpr std::size_t kNumBytes = 44;
  std::uint16_t version = kProtocolVersion;
  Nonce nonce{};
};

/// Who the other is. The MAC covers all of it, and the nonce of the Hello.
struct Claim {
  static constexpr std::size_t kNumBytes = 148;
  std::uint16_t version = kProtocolVersion;
  base::Rank rank;
  std::uint32_t num_ranks = 0;
  Nonce nonce{};
  std::string host;
  Mac mac{};
};

enum class Answer : std::uint8_t { Welcome, OtherNumberOfRanks, RankIsTaken };

/// What rank 0 says to a claim with the right MAC; a wrong one gets no answer. The MAC covers Hello and
/// Claim, too.
struct Welcome {
  static constexpr std::size_t kNumBytes = 112;
  Answer answer = Answer::Welcome;
  std::uint32_t num_ranks = 0;  ///< that rank 0 knows of
  std::string host;             ///< of rank 0
  Mac mac{};
};

std::string encode(const Hello& hello);
std::string encode(const Claim& claim);
std::string encode(const Welcome& welcome);
/// None for anything that the encode() of its kind does not give.
std::optional<Hello> parse_hello(std::string_view bytes);
std::optional<Claim> parse_claim(std::string_view bytes);
std::optional<Welcome> parse_welcome(std::string_view bytes);

/// Overwrites the MAC of a text with the right one.
void sign(const Key& key, const Hello& hello, Claim& claim);
void sign(const Key& key, const Hello& hello, const Claim& claim, Welcome& welcome);
bool is_signed(const Key& key, const Hello& hello, const Claim& claim);
bool is_signed(const Key& key, const Hello& hello, const Claim& claim, const Welcome& welcome);

/// The keys of a connection, one for each direction.
struct SessionKeys {
  Key to_rank_0;
  Key from_rank_0;
};
SessionKeys session_keys(const Key& key, const Hello& hello, const Claim& claim);

}  // namespace plenum::control
