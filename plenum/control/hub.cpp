#include "plenum/control/hub.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"

namespace plenum::control {
namespace {

/// In which the others come to wait for a rank that has failed. Launchers kill them soon: Open MPI a second
/// after it saw one die, by default.
constexpr auto kSettleLimit = std::chrono::milliseconds(250);
/// How long rank 0 waits until all have heard the news: longer only helps one that is stopped.
constexpr auto kTellLimit = std::chrono::seconds(2);

std::string seconds_text(std::chrono::milliseconds limit) {
  return base::format_seconds(std::chrono::duration<double>(limit).count());
}

}  // namespace

Hub::Hub(Options options, std::vector<AdmittedRank> ranks, OnFailure on_failure)
    : Star(std::move(options), std::move(on_failure)) {
  for (AdmittedRank& rank : ranks) {
    peers_.push_back({.rank = rank.rank, .host = rank.host, .connection = std::move(rank.connection)});
    peers_.back().connection->queue(Begin{});
  }
  flush();
  start();
}

Hub::~Hub() {
  stop();
}

// ---- the service thread ----

void Hub::serve() {
  while (true) {
    Clock::time_point until;
    std::vector<Waiting> waiting;
    {
      const std::lock_guard lock(mutex_);
      waiting = waiting_connections(until);
    }
    wait_for_events(waiting, until);
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    awake_.advance(now, longest_sleep());
    hear_peers();
    send_heartbeats(now);
    look_for_silence();
    if (is_stopping_) stop_limit_ = std::min(stop_limit_, now + kTellLimit);
    pursue_failure(now);
    flush();
    if (is_over(now)) break;
  }
  deliver(pending_);
}

std::vector<Star::Waiting> Hub::waiting_connections(Clock::time_point& until) const {
  until = phase_ == Phase::Running ? next_heartbeat_ : std::min(next_heartbeat_, phase_end_);
  std::vector<Waiting> waiting;
  for (const Peer& peer : peers_) {
    if (peer.connection) waiting.push_back({peer.connection->descriptor(), peer.connection->has_unsent()});
  }
  return waiting;
}

void Hub::hear_peers() {
  for (Peer& peer : peers_) {
    if (peer.connection &&
        !peer.connection->receive([&](Message&& message) { take(peer, std::move(message)); }))
      lose(peer);
  }
}

void Hub::take(Peer& peer, Message&& message) {
  peer.heard_at = awake_.now();
  if (auto* heartbeat = std::get_if<Heartbeat>(&message)) {
    peer.status = std::move(heartbeat->status);
    peer.has_answered = phase_ == Phase::Asking;
  } else if (auto* contribution = std::get_if<Contribution>(&message)) {
    peer.contribution = std::move(*contribution);
    changed_.notify_all();
  } else if (auto* report = std::get_if<FailureReport>(&message)) {
    begin_failure(peer.rank, std::move(report->what));
  } else if (const auto* ping = std::get_if<ClockPing>(&message)) {
    peer.connection->queue(ClockPong{.sent_ns = ping->sent_ns, .answered_ns = nanoseconds_now()});
  } else if (std::holds_alternative<Goodbye>(message)) {
    peer.has_said_goodbye = true;
    peer.connection->queue(Goodbye{});
    changed_.notify_all();
  }
}

void Hub::lose(Peer& peer) {
  peer.connection.reset();
  if (!peer.has_said_goodbye)
    begin_failure(peer.rank, "the process ended or was killed: its connection closed without a goodbye");
  changed_.notify_all();
}

void Hub::send_heartbeats(Clock::time_point now) {
  if (now < next_heartbeat_) return;
  next_heartbeat_ = now + options_.heartbeat_interval;
  const Heartbeat heartbeat{status_.read()};
  for (Peer& peer : peers_) {
    // To one that does not read, heartbeats do not pile up.
    if (peer.connection && !peer.connection->has_unsent()) peer.connection->queue(heartbeat);
  }
}

void Hub::look_for_silence() {
  for (const Peer& peer : peers_) {
    if (!peer.connection || peer.has_said_goodbye || awake_.now() - peer.heard_at < options_.dead_after)
      continue;
    begin_failure(peer.rank, fmt::format("no heartbeat for {}: the process is stopped or its host is cut off",
                                         seconds_text(options_.dead_after)));
  }
}

void Hub::flush() {
  for (Peer& peer : peers_) {
    // Whether the connection is broken is learnt by reading, behind all that the rank has said.
    if (peer.connection && peer.connection->has_unsent()) peer.connection->flush();
  }
}

bool Hub::is_over(Clock::time_point now) const {
  if (phase_ == Phase::Running && is_stopping_) {
    // One that said goodbye may still be about to read the answer, which closing the connection could take
    // from it.
    return now >= stop_limit_ || std::ranges::none_of(peers_, [](const Peer& peer) {
             return peer.connection && peer.has_said_goodbye;
           });
  }
  if (phase_ != Phase::Telling) return false;
  return now >= phase_end_ || std::ranges::none_of(peers_, [&](const Peer& peer) {
           return peer.connection && !peer.has_said_goodbye && !(pending_ && pending_->rank == peer.rank);
         });
}

void Hub::begin_failure(base::Rank rank, std::string what) {
  if (phase_ != Phase::Running) return;
  phase_ = Phase::Settling;
  phase_end_ = Clock::now() + std::min<Clock::duration>(options_.heartbeat_interval, kSettleLimit);
  pending_ = RankFailure{.rank = rank, .host = options_.host, .what = std::move(what)};
}

void Hub::pursue_failure(Clock::time_point now) {
  if (phase_ == Phase::Settling && now >= phase_end_) ask();
  const bool is_waiting = phase_ == Phase::Settling || phase_ == Phase::Asking;
  const bool is_answered = phase_ == Phase::Asking && (has_all_answers() || now >= phase_end_);
  if (is_waiting && (is_stopping_ || is_answered)) tell();
}

void Hub::ask() {
  phase_ = Phase::Asking;
  phase_end_ = Clock::now() + options_.heartbeat_interval * 3 / 2;
  for (Peer& peer : peers_) {
    if (peer.connection) peer.connection->queue(StatusRequest{});
  }
}

bool Hub::has_all_answers() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) {
    return !peer.connection || peer.has_said_goodbye || peer.has_answered;
  });
}

void Hub::tell() {
  pending_->last_action = status_.read();
  for (const Peer& peer : peers_) {
    if (peer.rank != pending_->rank) continue;
    pending_->host = peer.host;
    pending_->last_action = peer.status;
  }
  pending_->others = what_others_do(pending_->rank);
  for (Peer& peer : peers_) {
    if (peer.connection) peer.connection->queue(FailureNews{*pending_});
  }
  begin_telling();
}

void Hub::begin_telling() {
  phase_ = Phase::Telling;
  phase_end_ = Clock::now() + kTellLimit;
}

std::string Hub::what_others_do(base::Rank failed) const {
  std::map<std::string, std::vector<std::uint32_t>> ranks_of;
  const auto add = [&](base::Rank rank, const std::string& status) {
    if (rank != failed && !status.empty()) ranks_of[status].push_back(rank.value);
  };
  add(options_.rank, status_.read());
  for (const Peer& peer : peers_) add(peer.rank, peer.status);
  constexpr std::size_t kMostRanks = 8;
  std::string text;
  for (auto& [status, ranks] : ranks_of) {
    const std::size_t num_ranks = ranks.size();
    ranks.resize(std::min(num_ranks, kMostRanks));
    const std::string part =
        fmt::format("{}{} {}{}: {}", text.empty() ? "" : "; ", num_ranks == 1 ? "rank" : "ranks",
                    fmt::join(ranks, ", "), num_ranks > kMostRanks ? ", ..." : "", status);
    constexpr std::string_view kMore = "; ...";
    if (text.size() + part.size() + kMore.size() > kMostOthersBytes) return text.append(kMore);
    text += part;
  }
  return text;
}

// ---- other threads ----

std::string Hub::exchange(ExchangeKind kind, std::string_view bytes, const Combine& combine,
                          Milliseconds limit) {
  std::unique_lock lock(mutex_);
  const auto is_decided = [&] {
    // In a failure it is told, whoever leaves meanwhile.
    return failure_ || has_all_contributions() ||
           (!pending_ && std::ranges::any_of(peers_, &Peer::has_said_goodbye));
  };
  const bool is_in_time = changed_.wait_for(lock, limit, is_decided);
  throw_if_failed();
  if (!is_in_time || !has_all_contributions()) fail_exchange(kind, limit);
  std::vector<std::string> contributions = take_contributions(kind, bytes);
  lock.unlock();
  Combined combined = combine(std::move(contributions));
  lock.lock();
  const Outcome outcome{
      .kind = kind, .number = num_exchanges_++, .is_refusal = combined.is_refusal, .bytes = combined.bytes};
  for (Peer& peer : peers_) {
    if (peer.connection) peer.connection->queue(outcome);
  }
  if (combined.is_refusal && phase_ == Phase::Running) begin_telling();
  lock.unlock();
  wake();
  if (combined.is_refusal) throw base::UserError(combined.bytes);
  return std::move(combined.bytes);
}

bool Hub::has_all_contributions() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.contribution.has_value(); });
}

std::vector<std::string> Hub::take_contributions(ExchangeKind kind, std::string_view own) {
  std::vector<std::string> contributions = {std::string(own)};
  for (Peer& peer : peers_) {
    Contribution contribution = *std::exchange(peer.contribution, std::nullopt);
    base::check(contribution.kind == kind && contribution.number == num_exchanges_,
                "ranks do not exchange the same: rank {} is at {} {}, rank 0 at {} {}", peer.rank.value,
                exchange_name(contribution.kind), contribution.number, exchange_name(kind), num_exchanges_);
    contributions.push_back(std::move(contribution.bytes));
  }
  return contributions;
}

std::string Hub::missing_peers(bool (*is_missing)(const Peer&)) const {
  constexpr std::size_t kMostNamed = 3;
  std::string text;
  std::size_t num_missing = 0;
  for (const Peer& peer : peers_) {
    if (!is_missing(peer) || ++num_missing > kMostNamed) continue;
    text += fmt::format("{}rank {} on {}{}{}", text.empty() ? "" : ", ", peer.rank.value, peer.host,
                        peer.status.empty() ? "" : ", which last said: ", peer.status);
  }
  if (num_missing > kMostNamed) text += fmt::format(", and {} more", num_missing - kMostNamed);
  return text;
}

void Hub::fail_exchange(ExchangeKind kind, Milliseconds limit) const {
  for (const Peer& peer : peers_) {
    base::require(!peer.has_said_goodbye || peer.contribution.has_value(),
                  "rank {} on {} has ended, and does not come to the {}", peer.rank.value, peer.host,
                  exchange_name(kind));
  }
  base::fail("not all ranks came to the {} within {}: missing {}", exchange_name(kind), seconds_text(limit),
             missing_peers([](const Peer& peer) { return !peer.contribution.has_value(); }));
}

void Hub::report_failure(std::string_view what) {
  {
    const std::lock_guard lock(mutex_);
    begin_failure(options_.rank, std::string(what));
  }
  wake();
}

void Hub::goodbye(Milliseconds limit) {
  std::unique_lock lock(mutex_);
  const bool is_in_time = changed_.wait_for(lock, limit, [&] {
    return failure_ || (!pending_ && std::ranges::all_of(peers_, &Peer::has_said_goodbye));
  });
  throw_if_failed();
  if (!is_in_time) {
    base::fail("not all ranks ended within {}: missing {}", seconds_text(limit),
               missing_peers([](const Peer& peer) { return !peer.has_said_goodbye; }));
  }
}

}  // namespace plenum::control
