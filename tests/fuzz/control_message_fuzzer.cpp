#include <string>

#include "plenum/control/fingerprint.h"
#include "plenum/control/handshake.h"
#include "plenum/control/message.h"
#include "plenum/control/rendezvous_file.h"

#include "tests/fuzz/fuzz.h"

namespace {

using namespace plenum::control;

void must(bool holds) {
  if (!holds) __builtin_trap();
}

/// Messages one after another, as they come over a connection: what is read is what was written, byte for
/// byte.
void read_frames(std::string_view bytes) {
  while (bytes.size() >= FrameHeader::kNumBytes) {
    const std::string_view head = bytes.substr(0, FrameHeader::kNumBytes);
    const std::optional<FrameHeader> header = parse_header(head);
    if (!header) return;
    must(encode_header(*header) == head);
    bytes.remove_prefix(FrameHeader::kNumBytes);
    if (bytes.size() < header->num_bytes) return;
    const std::string_view body = bytes.substr(0, header->num_bytes);
    bytes.remove_prefix(header->num_bytes);
    if (const std::optional<Message> message = parse(header->type, body)) {
      must(message->index() == header->type);
      must(encode(*message) == body);
      if (const auto* contribution = std::get_if<Contribution>(&*message)) {
        if (const auto fingerprint = parse_fingerprint(contribution->bytes)) {
          must(encode(*fingerprint) == contribution->bytes);
          must(difference_text(*fingerprint, *fingerprint).empty() || fingerprint->size() > 1);
        }
      }
    }
  }
}

void read_handshake(std::string_view bytes) {
  if (const auto hello = parse_hello(bytes)) must(encode(*hello) == bytes);
  if (const auto claim = parse_claim(bytes)) must(encode(*claim) == bytes);
  if (const auto welcome = parse_welcome(bytes)) must(encode(*welcome) == bytes);
}

}  // namespace

// The first byte chooses what follows.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = plenum::fuzz::as_text(data + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      read_frames(bytes);
      break;
    case 1:
      read_handshake(bytes);
      break;
    default:
      if (const auto place = parse_rendezvous(bytes)) {
        plenum::fuzz::parse_or_refuse([&] { must(parse_rendezvous(rendezvous_text(*place)) == place); });
      }
  }
  return 0;
}
