#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "plenum/control/rank_failure.h"

namespace plenum::control {

inline constexpr std::size_t kMostStatusBytes = 512;
inline constexpr std::size_t kMostFailureBytes = 2048;
inline constexpr std::size_t kMostOthersBytes = 4096;
inline constexpr std::size_t kMostHostBytes = 64;  ///< as Linux has it
inline constexpr std::size_t kMostExchangeBytes = std::size_t{1} << 16;

/// All ranks are there.
struct Begin {
  friend bool operator==(const Begin&, const Begin&) = default;
};
/// The sender's service thread runs.
struct Heartbeat {
  std::string status;  ///< what its rank does or waits for
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

/// What all ranks do together.
enum class ExchangeKind : std::uint8_t { Barrier, Broadcast, Gather, Compare };
std::string_view exchange_name(ExchangeKind kind);

/// A rank's part of an exchange, to rank 0.
struct Contribution {
  ExchangeKind kind = ExchangeKind::Barrier;
  std::uint32_t number = 0;  ///< how many exchanges were before
  std::string bytes;
  friend bool operator==(const Contribution&, const Contribution&) = default;
};
/// What came of it, from rank 0.
struct Outcome {
  ExchangeKind kind = ExchangeKind::Barrier;
  std::uint32_t number = 0;
  bool is_refusal = false;  ///< the run does not begin: `bytes` is a line that says why
  std::string bytes;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// A rank's own failure, to rank 0.
struct FailureReport {
  std::string what;
  friend bool operator==(const FailureReport&, const FailureReport&) = default;
};
/// Somebody's failure, from rank 0.
struct FailureNews {
  RankFailure failure;
  friend bool operator==(const FailureNews&, const FailureNews&) = default;
};

/// Asks rank 0 for its time.
struct ClockPing {
  std::int64_t sent_ns = 0;
  friend bool operator==(const ClockPing&, const ClockPing&) = default;
};
struct ClockPong {
  std::int64_t sent_ns = 0;      ///< of the ping
  std::int64_t answered_ns = 0;  ///< by the clock of rank 0
  friend bool operator==(const ClockPong&, const ClockPong&) = default;
};

/// The sender is done, and nobody shall miss it; rank 0 answers with the same.
struct Goodbye {
  friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

/// Rank 0 asks for a heartbeat now: a rank has failed, and what the others wait for is news.
struct StatusRequest {
  friend bool operator==(const StatusRequest&, const StatusRequest&) = default;
};

/// Everything that two processes say to each other once each knows who the other is.
using Message = std::variant<Begin, Heartbeat, Contribution, Outcome, FailureReport, FailureNews, ClockPing,
                             ClockPong, Goodbye, StatusRequest>;

/// What stands before a message on the wire, readable.
struct FrameHeader {
  static constexpr std::size_t kNumBytes = 8;

  std::uint8_t type = 0;        ///< the index into Message
  std::uint32_t num_bytes = 0;  ///< of the message
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

std::string encode_header(const FrameHeader& header);
/// None for a type that does not exist or a size that a message of that type cannot have.
std::optional<FrameHeader> parse_header(std::string_view bytes);

/// The message without its header. Texts longer than they may be are cut.
std::string encode(const Message& message);
/// None for anything that encode() does not give for that type.
std::optional<Message> parse(std::uint8_t type, std::string_view bytes);

}  // namespace plenum::control
