#include "plenum/control/handshake.h"

#include "plenum/control/byte_text.h"
#include "plenum/control/message.h"

namespace plenum::control {
namespace {

constexpr std::string_view kMagic = "PLNMCTL\n";

ByteWriter begin_text(std::uint16_t first, std::uint16_t second) {
  return ByteWriter().bytes(kMagic).number(first).number(second);
}

ByteWriter unsigned_claim(const Claim& claim) {
  return begin_text(claim.version, 0)
      .number(claim.rank.value)
      .number(claim.num_ranks)
      .bytes(as_bytes(claim.nonce))
      .field(claim.host, kMostHostBytes);
}

ByteWriter unsigned_welcome(const Welcome& welcome) {
  return begin_text(static_cast<std::uint16_t>(welcome.answer), 0)
      .number(welcome.num_ranks)
      .field(welcome.host, kMostHostBytes);
}

/// What both know by the claim. What is signed begins with its kind, so that no text stands for another.
std::string transcript(std::string_view kind, const Hello& hello, const Claim& claim) {
  return ByteWriter().text(kind).bytes(encode(hello)).bytes(unsigned_claim(claim).result()).result();
}

}  // namespace

std::string encode(const Hello& hello) {
  return begin_text(hello.version, 0).bytes(as_bytes(hello.nonce)).result();
}

std::string encode(const Claim& claim) {
  return unsigned_claim(claim).bytes(as_bytes(claim.mac)).result();
}

std::string encode(const Welcome& welcome) {
  return unsigned_welcome(welcome).bytes(as_bytes(welcome.mac)).result();
}

std::optional<Hello> parse_hello(std::string_view bytes) {
  ByteReader reader(bytes);
  Hello hello;
  const bool is_ours = reader.bytes(kMagic.size()) == kMagic;
  hello.version = reader.number<std::uint16_t>();
  const bool is_padded = reader.number<std::uint16_t>() == 0;
  hello.nonce = reader.array<std::tuple_size_v<Nonce>>();
  if (!is_ours || !is_padded || !reader.is_finished()) return std::nullopt;
  return hello;
}

std::optional<Claim> parse_claim(std::string_view bytes) {
  ByteReader reader(bytes);
  Claim claim;
  const bool is_ours = reader.bytes(kMagic.size()) == kMagic;
  claim.version = reader.number<std::uint16_t>();
  reader.number<std::uint16_t>();
  claim.rank.value = reader.number<std::uint32_t>();
  claim.num_ranks = reader.number<std::uint32_t>();
  claim.nonce = reader.array<std::tuple_size_v<Nonce>>();
  claim.host = reader.field(kMostHostBytes);
  claim.mac = reader.array<std::tuple_size_v<Mac>>();
  if (!is_ours || !reader.is_finished() || encode(claim) != bytes) return std::nullopt;
  return claim;
}

std::optional<Welcome> parse_welcome(std::string_view bytes) {
  ByteReader reader(bytes);
  Welcome welcome;
  const bool is_ours = reader.bytes(kMagic.size()) == kMagic;
  const auto answer = reader.number<std::uint16_t>();
  welcome.answer = static_cast<Answer>(answer);
  reader.number<std::uint16_t>();
  welcome.num_ranks = reader.number<std::uint32_t>();
  welcome.host = reader.field(kMostHostBytes);
  welcome.mac = reader.array<std::tuple_size_v<Mac>>();
  const bool is_answer = answer <= static_cast<std::uint16_t>(Answer::RankIsTaken);
  if (!is_ours || !is_answer || !reader.is_finished() || encode(welcome) != bytes) return std::nullopt;
  return welcome;
}

void sign(const Key& key, const Hello& hello, Claim& claim) {
  claim.mac = make_mac(key, transcript("claim", hello, claim));
}

bool is_signed(const Key& key, const Hello& hello, const Claim& claim) {
  return is_right_mac(key, transcript("claim", hello, claim), claim.mac);
}

void sign(const Key& key, const Hello& hello, const Claim& claim, Welcome& welcome) {
  welcome.mac = make_mac(key, transcript("welcome", hello, claim) + unsigned_welcome(welcome).result());
}

bool is_signed(const Key& key, const Hello& hello, const Claim& claim, const Welcome& welcome) {
  return is_right_mac(key, transcript("welcome", hello, claim) + unsigned_welcome(welcome).result(),
                      welcome.mac);
}

SessionKeys session_keys(const Key& key, const Hello& hello, const Claim& claim) {
  return {.to_rank_0 = derive_key(key, transcript("to rank 0", hello, claim)),
          .from_rank_0 = derive_key(key, transcript("from rank 0", hello, claim))};
}

}  // namespace plenum::control
