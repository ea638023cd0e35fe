#include "plenum/control/message.h"

#include <array>

#include "plenum/control/byte_text.h"

namespace plenum::control {
namespace {

constexpr std::size_t kTextLength = sizeof(std::uint32_t);

std::string encode_body(const Begin&) {
  return {};
}

std::string encode_body(const Heartbeat& message) {
  return ByteWriter().text(std::string_view(message.status).substr(0, kMostStatusBytes)).result();
}

std::string encode_body(const Contribution& message) {
  return ByteWriter()
      .number(static_cast<std::uint8_t>(message.kind))
      .number(message.number)
      .text(message.bytes)
      .result();
}

std::string encode_body(const Outcome& message) {
  return ByteWriter()
      .number(static_cast<std::uint8_t>(message.kind))
      .number(message.number)
      .number(static_cast<std::uint8_t>(message.is_refusal ? 1 : 0))
      .text(message.bytes)
      .result();
}

std::string encode_body(const FailureReport& message) {
  return ByteWriter().text(std::string_view(message.what).substr(0, kMostFailureBytes)).result();
}

std::string encode_body(const FailureNews& message) {
  const RankFailure& failure = message.failure;
  return ByteWriter()
      .number(failure.rank.value)
      .text(std::string_view(failure.host).substr(0, kMostHostBytes))
      .text(std::string_view(failure.what).substr(0, kMostFailureBytes))
      .text(std::string_view(failure.last_action).substr(0, kMostStatusBytes))
      .text(std::string_view(failure.others).substr(0, kMostOthersBytes))
      .result();
}

std::string encode_body(const ClockPing& message) {
  return ByteWriter().number(message.sent_ns).result();
}

std::string encode_body(const ClockPong& message) {
  return ByteWriter().number(message.sent_ns).number(message.answered_ns).result();
}

std::string encode_body(const Goodbye&) {
  return {};
}

std::string encode_body(const StatusRequest&) {
  return {};
}

void read(ByteReader&, Begin&) {}
void read(ByteReader&, Goodbye&) {}
void read(ByteReader&, StatusRequest&) {}

void read(ByteReader& reader, Heartbeat& message) {
  message.status = reader.text(kMostStatusBytes);
}

/// False where there is no such kind.
bool read_kind(ByteReader& reader, ExchangeKind& kind) {
  const auto value = reader.number<std::uint8_t>();
  kind = static_cast<ExchangeKind>(value);
  return value <= static_cast<std::uint8_t>(ExchangeKind::Compare);
}

bool read(ByteReader& reader, Contribution& message) {
  const bool is_kind = read_kind(reader, message.kind);
  message.number = reader.number<std::uint32_t>();
  message.bytes = reader.text(kMostExchangeBytes);
  return is_kind;
}

bool read(ByteReader& reader, Outcome& message) {
  const bool is_kind = read_kind(reader, message.kind);
  message.number = reader.number<std::uint32_t>();
  const auto is_refusal = reader.number<std::uint8_t>();
  message.is_refusal = is_refusal == 1;
  message.bytes = reader.text(kMostExchangeBytes);
  return is_kind && is_refusal <= 1;
}

void read(ByteReader& reader, FailureReport& message) {
  message.what = reader.text(kMostFailureBytes);
}

void read(ByteReader& reader, FailureNews& message) {
  RankFailure& failure = message.failure;
  failure.rank.value = reader.number<std::uint32_t>();
  failure.host = reader.text(kMostHostBytes);
  failure.what = reader.text(kMostFailureBytes);
  failure.last_action = reader.text(kMostStatusBytes);
  failure.others = reader.text(kMostOthersBytes);
}

void read(ByteReader& reader, ClockPing& message) {
  message.sent_ns = reader.number<std::int64_t>();
}

void read(ByteReader& reader, ClockPong& message) {
  message.sent_ns = reader.number<std::int64_t>();
  message.answered_ns = reader.number<std::int64_t>();
}

template <typename Kind>
std::optional<Message> parse_as(std::string_view bytes) {
  ByteReader reader(bytes);
  Kind message;
  bool is_sound = true;
  if constexpr (std::is_same_v<decltype(read(reader, message)), bool>) {
    is_sound = read(reader, message);
  } else {
    read(reader, message);
  }
  if (!is_sound || !reader.is_finished()) return std::nullopt;
  return Message(std::move(message));
}

/// What there is to know of a type of message before its bytes have come.
struct TypeRow {
  std::size_t most_bytes;
  std::optional<Message> (*parse)(std::string_view bytes);
};

constexpr std::array<TypeRow, std::variant_size_v<Message>> kTypes = {{
    {0, &parse_as<Begin>},
    {kTextLength + kMostStatusBytes, &parse_as<Heartbeat>},
    {5 + kTextLength + kMostExchangeBytes, &parse_as<Contribution>},
    {6 + kTextLength + kMostExchangeBytes, &parse_as<Outcome>},
    {kTextLength + kMostFailureBytes, &parse_as<FailureReport>},
    {4 + 4 * kTextLength + kMostHostBytes + kMostFailureBytes + kMostStatusBytes + kMostOthersBytes,
     &parse_as<FailureNews>},
    {8, &parse_as<ClockPing>},
    {16, &parse_as<ClockPong>},
    {0, &parse_as<Goodbye>},
    {0, &parse_as<StatusRequest>},
}};

}  // namespace

std::string_view exchange_name(ExchangeKind kind) {
  switch (kind) {
    case ExchangeKind::Barrier:
      return "barrier";
    case ExchangeKind::Broadcast:
      return "broadcast";
    case ExchangeKind::Gather:
      return "gather";
    case ExchangeKind::Compare:
      return "comparison";
  }
  return "";
}

std::string encode_header(const FrameHeader& header) {
  return ByteWriter().number(header.num_bytes).number(std::uint32_t{header.type}).result();
}

std::optional<FrameHeader> parse_header(std::string_view bytes) {
  ByteReader reader(bytes);
  const auto num_bytes = reader.number<std::uint32_t>();
  const auto type = reader.number<std::uint32_t>();
  if (!reader.is_finished() || type >= kTypes.size() || num_bytes > kTypes[type].most_bytes)
    return std::nullopt;
  return FrameHeader{.type = static_cast<std::uint8_t>(type), .num_bytes = num_bytes};
}

std::string encode(const Message& message) {
  return std::visit([](const auto& kind) { return encode_body(kind); }, message);
}

std::optional<Message> parse(std::uint8_t type, std::string_view bytes) {
  if (type >= kTypes.size() || bytes.size() > kTypes[type].most_bytes) return std::nullopt;
  return kTypes[type].parse(bytes);
}

}  // namespace plenum::control
