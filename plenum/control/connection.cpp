#include "plenum/control/connection.h"

#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "plenum/control/network_address.h"

namespace plenum::control {

Connection::Connection(Descriptor socket, const Key& sending, const Key& receiving)
    : socket_(std::move(socket)), sending_(sending), receiving_(receiving) {
  prefer_speed(socket_.get());
}

void Connection::queue(const Message& message) {
  const std::string body = encode(message);
  const std::string header = encode_header({.type = static_cast<std::uint8_t>(message.index()),
                                            .num_bytes = static_cast<std::uint32_t>(body.size())});
  unsent_ += header;
  sending_.seal(header, body, unsent_);
}

bool Connection::flush() {
  std::size_t num_sent = 0;
  bool is_whole = true;
  while (num_sent < unsent_.size()) {
    const ssize_t count =
        ::send(socket_.get(), unsent_.data() + num_sent, unsent_.size() - num_sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      is_whole = errno == EAGAIN || errno == EWOULDBLOCK;
      break;
    }
    num_sent += static_cast<std::size_t>(count);
  }
  unsent_.erase(0, num_sent);
  if (!is_whole) unsent_.clear();
  return is_whole;
}

bool Connection::receive(base::FunctionRef<void(Message&&)> take) {
  // So much at a time that one peer keeps nobody waiting.
  constexpr int kMostReads = 16;
  char chunk[1 << 14];
  for (int i = 0; i < kMostReads; ++i) {
    const ssize_t count = ::recv(socket_.get(), chunk, sizeof chunk, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (count == 0) return false;
    received_.append(chunk, static_cast<std::size_t>(count));
    if (!take_frames(take)) return false;
  }
  return true;
}

bool Connection::take_frames(base::FunctionRef<void(Message&&)> take) {
  std::size_t taken = 0;
  const std::string_view received = received_;
  while (received.size() - taken >= FrameHeader::kNumBytes) {
    const std::string_view header_bytes = received.substr(taken, FrameHeader::kNumBytes);
    const std::optional<FrameHeader> header = parse_header(header_bytes);
    if (!header) return false;
    const std::size_t num_sealed = header->num_bytes + FrameCipher::kOverheadBytes;
    const std::string_view rest = received.substr(taken + FrameHeader::kNumBytes);
    if (rest.size() < num_sealed) break;
    if (!receiving_.open(header_bytes, rest.substr(0, num_sealed), body_)) return false;
    std::optional<Message> message = parse(header->type, body_);
    if (!message) return false;
    taken += FrameHeader::kNumBytes + num_sealed;
    take(std::move(*message));
  }
  received_.erase(0, taken);
  return true;
}

void Connection::end_sending() {
  ::shutdown(socket_.get(), SHUT_WR);
}

}  // namespace plenum::control
