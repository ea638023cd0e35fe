#include "plenum/control/arrival.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/control/handshake.h"
#include "plenum/control/network_address.h"
#include "plenum/control/rendezvous_file.h"

namespace plenum::control {
namespace {

using Clock = std::chrono::steady_clock;

/// Exactly so many bytes; fewer where they do not come in time.
std::string receive_exactly(int socket, std::size_t num_bytes, Clock::time_point until) {
  std::string bytes;
  while (bytes.size() < num_bytes && wait_ready(socket, POLLIN, until)) {
    char chunk[256];
    const ssize_t count =
        ::recv(socket, chunk, std::min(sizeof chunk, num_bytes - bytes.size()), MSG_DONTWAIT);
    if (count > 0) bytes.append(chunk, static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) break;
  }
  return bytes;
}

/// One try to reach rank 0 at the place that a file names.
class Attempt {
 public:
  Attempt(const Arriving& who, const Rendezvous& place)
      : who_(who),
        place_(place),
        key_(run_key(who.secret.empty() ? place.secret : who.secret, place.run)),
        until_(Clock::now() + who.handshake_limit) {}

  /// None, with problem(), where whoever is there is not rank 0 of this run.
  std::optional<Arrived> shake_hands() {
    Descriptor socket = connect_to(place_.address, place_.port, who_.handshake_limit);
    if (!socket.is_open()) return fail(fmt::format("nobody answers there: {}", std::strerror(errno)));
    const std::optional<Hello> hello = parse_hello(receive_exactly(socket.get(), Hello::kNumBytes, until_));
    if (!hello) return fail("who answers there is not Plenum");
    if (hello->version != kProtocolVersion)
      return fail(
          fmt::format("who answers there speaks version {} of the protocol, and this process version {}: "
                      "run the same build everywhere",
                      hello->version, kProtocolVersion));
    Claim claim{.rank = who_.rank,
                .num_ranks = who_.num_ranks,
                .nonce = random_array<Nonce>(),
                .host = who_.host.substr(0, kMostHostBytes)};
    sign(key_, *hello, claim);
    const std::string bytes = encode(claim);
    if (::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
      return fail("rank 0 closed the connection");
    const std::optional<Welcome> welcome =
        parse_welcome(receive_exactly(socket.get(), Welcome::kNumBytes, until_));
    if (!welcome || !is_signed(key_, *hello, claim, *welcome))
      return fail("who answers there does not know the secret of this run, or has too many callers");
    refuse_unless_welcome(*welcome);
    const SessionKeys keys = session_keys(key_, *hello, claim);
    return Arrived{.connection = Connection(std::move(socket), keys.to_rank_0, keys.from_rank_0),
                   .host = welcome->host,
                   .early_messages = {}};
  }

  const std::string& problem() const { return problem_; }

 private:
  std::nullopt_t fail(std::string_view why) {
    problem_ = fmt::format("{} names {} port {}, but {}", rendezvous_path(who_.run_directory), place_.address,
                           place_.port, why);
    return std::nullopt;
  }

  void refuse_unless_welcome(const Welcome& welcome) const {
    base::require(
        welcome.answer != Answer::OtherNumberOfRanks,
        "rank 0 on {} was started as one of {} ranks, this process as rank {} of {}: start all with "
        "the same number",
        welcome.host, welcome.num_ranks, who_.rank.value, who_.num_ranks);
    base::require(welcome.answer != Answer::RankIsTaken,
                  "another process is rank {} of this run already: start each rank once", who_.rank.value);
  }

  const Arriving& who_;
  const Rendezvous& place_;
  const Key key_;
  const Clock::time_point until_;
  std::string problem_;
};

/// Waits until rank 0 says that all are there.
void wait_for_begin(Arrived& arrived, Clock::time_point until) {
  bool has_begun = false;
  const auto take = [&](Message&& message) {
    if (const auto* news = std::get_if<FailureNews>(&message); news != nullptr && !has_begun)
      throw base::UserError(news->failure.what);
    if (std::holds_alternative<Begin>(message)) {
      has_begun = true;
    } else {
      arrived.early_messages.push_back(std::move(message));
    }
  };
  while (!has_begun) {
    base::require(wait_ready(arrived.connection.descriptor(), POLLIN, until),
                  "rank 0 on {} waits for other ranks, which do not come; it will say which", arrived.host);
    const bool is_open = arrived.connection.receive(take);
    base::require(is_open || has_begun, "rank 0 on {} ended before all ranks were there", arrived.host);
  }
}

}  // namespace

Arrived arrive(const Arriving& who) {
  constexpr auto kFirstPause = std::chrono::milliseconds(10);
  constexpr auto kLongestPause = std::chrono::milliseconds(500);
  const Clock::time_point until = Clock::now() + who.limit;
  std::chrono::milliseconds pause = kFirstPause;
  while (true) {
    FoundRendezvous found = find_rendezvous(who.run_directory);
    if (found.rendezvous && found.rendezvous->secret.empty() && who.secret.empty()) {
      found.problem = fmt::format("{} has no secret: give this process the PLENUM_SECRET that rank 0 has",
                                  rendezvous_path(who.run_directory));
    } else if (found.rendezvous) {
      Attempt attempt(who, *found.rendezvous);
      if (std::optional<Arrived> arrived = attempt.shake_hands()) {
        // Rank 0 gives up first, since it knows who is missing.
        wait_for_begin(*arrived, Clock::now() + who.limit + who.handshake_limit);
        return std::move(*arrived);
      }
      found.problem = attempt.problem();
    }
    if (Clock::now() >= until)
      base::fail("rank {} on {} did not reach rank 0 within {}: {}", who.rank.value, who.host,
                 base::format_seconds(std::chrono::duration<double>(who.limit).count()), found.problem);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace plenum::control
