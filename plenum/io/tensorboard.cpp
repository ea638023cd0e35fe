#include "plenum/io/tensorboard.h"

#include <bit>

#include <fmt/format.h>

#include "plenum/io/crc32c.h"
#include "plenum/io/directory.h"

namespace plenum::io {
namespace {

static_assert(std::endian::native == std::endian::little, "event files are little-endian");

template <typename Value>
std::string_view bytes_of(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// A checksum as TFRecord files store it.
std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return std::rotr(crc, 15) + 0xa282ead8u;
}

/// A protocol-buffer message, encoded field by field. Numbers are those of tensorflow's event.proto and
/// summary.proto.
class Message {
 public:
  void add_integer(std::uint32_t field, std::int64_t value) {
    add_key(field, WireType::Varint);
    add_varint(static_cast<std::uint64_t>(value));
  }
  void add_double(std::uint32_t field, double value) {
    add_key(field, WireType::Fixed64);
    bytes_ += bytes_of(value);
  }
  void add_float(std::uint32_t field, float value) {
    add_key(field, WireType::Fixed32);
    bytes_ += bytes_of(value);
  }
  void add_bytes(std::uint32_t field, std::string_view value) {
    add_key(field, WireType::LengthDelimited);
    add_varint(value.size());
    bytes_ += value;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  enum class WireType : std::uint32_t { Varint = 0, Fixed64 = 1, LengthDelimited = 2, Fixed32 = 5 };

  void add_key(std::uint32_t field, WireType type) {
    add_varint(field << 3 | static_cast<std::uint32_t>(type));
  }
  void add_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

constexpr std::uint32_t kEventTime = 1;
constexpr std::uint32_t kEventStep = 2;
constexpr std::uint32_t kEventFileVersion = 3;
constexpr std::uint32_t kEventSummary = 5;
constexpr std::uint32_t kEventSessionLog = 7;
constexpr std::uint32_t kEventSource = 10;
constexpr std::uint32_t kSessionLogStatus = 1;
constexpr std::int64_t kSessionStart = 1;
constexpr std::uint32_t kSourceWriter = 1;
constexpr std::uint32_t kSummaryValue = 1;
constexpr std::uint32_t kValueTag = 1;
constexpr std::uint32_t kValueSimple = 2;

/// A name that no file of the directory has, which is made where it is missing.
std::string new_path(const std::string& directory, std::string_view host, std::int64_t process_id,
                     double time_seconds) {
  make_directories(directory);
  for (int number = 0;; ++number) {
    std::string path = fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}", directory,
                                   static_cast<std::int64_t>(time_seconds), host, process_id, number);
    if (!path_exists(path)) return path;
  }
}

}  // namespace

EventFile::EventFile(const std::string& directory, std::string_view host, std::int64_t process_id,
                     double time_seconds, std::int64_t first_step)
    : file_(new_path(directory, host, process_id, time_seconds)) {
  Message source;
  source.add_bytes(kSourceWriter, "plenum");
  Message event;
  event.add_double(kEventTime, time_seconds);
  event.add_bytes(kEventFileVersion, "brain.Event:2");
  event.add_bytes(kEventSource, source.bytes());
  append_record(event.bytes());
  Message session_log;
  session_log.add_integer(kSessionLogStatus, kSessionStart);
  Message start;
  start.add_double(kEventTime, time_seconds);
  start.add_integer(kEventStep, first_step);
  start.add_bytes(kEventSessionLog, session_log.bytes());
  append_record(start.bytes());
  flush();
}

void EventFile::append(std::int64_t step, double time_seconds, std::span<const Scalar> scalars) {
  Message summary;
  for (const Scalar& scalar : scalars) {
    Message value;
    value.add_bytes(kValueTag, scalar.tag);
    value.add_float(kValueSimple, scalar.value);
    summary.add_bytes(kSummaryValue, value.bytes());
  }
  Message event;
  event.add_double(kEventTime, time_seconds);
  event.add_integer(kEventStep, step);
  event.add_bytes(kEventSummary, summary.bytes());
  append_record(event.bytes());
}

void EventFile::append_record(std::string_view event) {
  const std::uint64_t size = event.size();
  file_.append_value(size);
  file_.append_value(masked_crc(bytes_of(size)));
  file_.append(event);
  file_.append_value(masked_crc(event));
}

}  // namespace plenum::io
