#include "plenum/control/admission.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"

namespace plenum::control {
namespace {

using Clock = Admission::Clock;

/// Whether the other end has closed its connection or spoken before its turn.
bool has_moved(int socket) {
  char byte = 0;
  const ssize_t count = ::recv(socket, &byte, 1, MSG_PEEK);
  return count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/// Sends a few bytes to a new connection, for which the system has room; false if it does not.
bool send_at_once(int socket, const std::string& bytes) {
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

/// Where a connection comes from, without its port: only to be compared.
std::string origin(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof text);
  }
  return text;
}

}  // namespace

Admission::Admission(Listener listener, const Key& key, Options options)
    : listener_(std::move(listener)),
      key_(key),
      options_(std::move(options)),
      admitted_(options_.num_ranks),
      begin_(Clock::now()) {}

std::vector<AdmittedRank> Admission::admit_all(Clock::time_point until) {
  while (!missing_ranks().empty()) {
    if (Clock::now() >= until) give_up();
    wait(until);
    forget_ranks_that_left();
    hear_strangers();
    accept_strangers();
  }
  strangers_.clear();
  listener_.socket.close();
  std::vector<AdmittedRank> ranks;
  for (std::optional<AdmittedRank>& rank : admitted_) {
    if (rank) ranks.push_back(std::move(*rank));
  }
  return ranks;
}

void Admission::wait(Clock::time_point until) {
  std::vector<pollfd> waiting = {{listener_.socket.get(), POLLIN, 0}};
  for (const Stranger& stranger : strangers_) {
    waiting.push_back({stranger.socket.get(), POLLIN, 0});
    until = std::min(until, stranger.deadline);
  }
  for (const std::optional<AdmittedRank>& rank : admitted_) {
    if (rank) waiting.push_back({rank->connection.descriptor(), POLLIN, 0});
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  ::poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1000)));
}

void Admission::forget_ranks_that_left() {
  // They speak again only after Begin.
  for (std::optional<AdmittedRank>& rank : admitted_) {
    if (rank && has_moved(rank->connection.descriptor())) rank.reset();
  }
}

void Admission::hear_strangers() {
  const Clock::time_point now = Clock::now();
  std::erase_if(strangers_, [&](Stranger& stranger) { return !hear(stranger) || now >= stranger.deadline; });
}

bool Admission::hear(Stranger& stranger) {
  while (stranger.received.size() < Claim::kNumBytes) {
    char bytes[Claim::kNumBytes];
    const ssize_t count =
        ::recv(stranger.socket.get(), bytes, Claim::kNumBytes - stranger.received.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (count == 0) return false;
    stranger.received.append(bytes, static_cast<std::size_t>(count));
  }
  const std::optional<Claim> claim = parse_claim(stranger.received);
  if (!claim || claim->version != kProtocolVersion || !is_signed(key_, stranger.hello, *claim)) {
    ++num_refused_;
    return false;
  }
  return decide(stranger, *claim);
}

bool Admission::decide(Stranger& stranger, const Claim& claim) {
  Welcome welcome{.num_ranks = options_.num_ranks, .host = options_.host};
  if (claim.num_ranks != options_.num_ranks || claim.rank.value >= options_.num_ranks) {
    welcome.answer = Answer::OtherNumberOfRanks;
  } else if (claim.rank.value == 0 || admitted_[claim.rank.index()]) {
    welcome.answer = Answer::RankIsTaken;
  }
  sign(key_, stranger.hello, claim, welcome);
  if (!send_at_once(stranger.socket.get(), encode(welcome)) || welcome.answer != Answer::Welcome)
    return false;
  const SessionKeys keys = session_keys(key_, stranger.hello, claim);
  admitted_[claim.rank.index()].emplace(
      AdmittedRank{.rank = claim.rank,
                   .host = claim.host,
                   .connection = Connection(std::move(stranger.socket), keys.from_rank_0, keys.to_rank_0)});
  return false;  // no stranger any more
}

void Admission::accept_strangers() {
  // So many at a time that those who came before are heard in between.
  const std::size_t most = options_.most_strangers;
  for (std::size_t i = 0; i < most; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    Descriptor socket(::accept4(listener_.socket.get(), reinterpret_cast<sockaddr*>(&address), &size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.is_open()) {
      greet(std::move(socket), origin(address));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      evict_stranger();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void Admission::greet(Descriptor socket, std::string address) {
  if (strangers_.size() >= options_.most_strangers) evict_stranger();
  Stranger stranger{.socket = std::move(socket),
                    .address = std::move(address),
                    .hello = {.nonce = random_array<Nonce>()},
                    .received = {},
                    .deadline = Clock::now() + options_.handshake_limit};
  if (send_at_once(stranger.socket.get(), encode(stranger.hello))) strangers_.push_back(std::move(stranger));
}

void Admission::evict_stranger() {
  if (strangers_.empty()) return;
  std::map<std::string_view, std::size_t> num_of;
  for (const Stranger& stranger : strangers_) ++num_of[stranger.address];
  const auto busiest = std::ranges::max_element(num_of, {}, [](const auto& entry) { return entry.second; });
  strangers_.erase(std::ranges::find(strangers_, busiest->first, &Stranger::address));
}

std::vector<std::uint32_t> Admission::missing_ranks() const {
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 1; rank < options_.num_ranks; ++rank) {
    if (!admitted_[rank]) missing.push_back(rank);
  }
  return missing;
}

void Admission::give_up() {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::uint32_t> missing = missing_ranks();
  const std::size_t num_missing = missing.size();
  missing.resize(std::min(num_missing, kMostNamed));
  const std::chrono::duration<double> waited = Clock::now() - begin_;
  const std::string text = fmt::format(
      "{} of {} ranks did not come to rank 0 on {} within {}: missing {} {}{}{}; see whether they were "
      "started, "
      "with the same run directory, and what they say",
      num_missing, options_.num_ranks, options_.host, base::format_seconds(waited.count()),
      num_missing == 1 ? "rank" : "ranks", fmt::join(missing, ", "), num_missing > kMostNamed ? ", ..." : "",
      num_refused_ > 0 ? fmt::format(" ({} connections did not show the secret of this run)", num_refused_)
                       : "");
  listener_.socket.close();
  for (std::optional<AdmittedRank>& rank : admitted_) {
    if (!rank) continue;
    rank->connection.queue(FailureNews{{.rank = {missing.front()}, .host = {}, .what = text}});
    rank->connection.flush();
    rank->connection.end_sending();
  }
  throw base::UserError(text);
}

}  // namespace plenum::control
