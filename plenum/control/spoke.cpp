#include "plenum/control/spoke.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/control/network_address.h"

namespace plenum::control {
namespace {

std::string limit_text(std::chrono::milliseconds limit) {
  return base::format_seconds(std::chrono::duration<double>(limit).count());
}

}  // namespace

Spoke::Spoke(Options options, Arrived arrived, OnFailure on_failure)
    : Star(std::move(options), std::move(on_failure)),
      connection_(std::move(arrived.connection)),
      host_of_rank_0_(std::move(arrived.host)) {
  for (Message& message : arrived.early_messages) take(std::move(message));
  start();
}

Spoke::~Spoke() {
  stop();
}

// ---- the service thread ----

void Spoke::serve() {
  while (serve_once()) {
  }
  {
    const std::lock_guard lock(mutex_);
    flush_for(Milliseconds(500));
    // In a failure rank 0 waits for this before it ends its own process: the news was heard.
    connection_.end_sending();
  }
  deliver(pending_);
}

bool Spoke::serve_once() {
  Clock::time_point until;
  bool wants_to_send = false;
  {
    const std::lock_guard lock(mutex_);
    until = is_ping_on_its_way_ ? next_heartbeat_ : std::min(next_heartbeat_, next_ping_);
    if (stop_limit_) until = std::min(until, *stop_limit_);
    wants_to_send = connection_.has_unsent();
  }
  wait_for_events({{connection_.descriptor(), wants_to_send}}, until);
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  awake_.advance(now, longest_sleep());
  const bool is_open = connection_.receive([&](Message&& message) { take(std::move(message)); });
  if (!is_open) lose_rank_0("the process ended or was killed: its connection closed without a goodbye");
  if (awake_.now() - heard_at_ >= options_.dead_after) {
    const std::string silence = fmt::format("no heartbeat for {}", limit_text(options_.dead_after));
    lose_rank_0(silence + ": the process is stopped or its host is cut off");
    // If it was only stopped, it shall know why it was left.
    connection_.queue(FailureReport{"took rank 0 for dead: " + silence});
  }
  keep_time(now);
  connection_.flush();
  return is_open && !is_over(now);
}

void Spoke::take(Message&& message) {
  heard_at_ = awake_.now();
  if (auto* heartbeat = std::get_if<Heartbeat>(&message)) {
    status_of_rank_0_ = std::move(heartbeat->status);
  } else if (auto* outcome = std::get_if<Outcome>(&message)) {
    is_done_ |= outcome->is_refusal;
    outcome_ = std::move(*outcome);
  } else if (auto* news = std::get_if<FailureNews>(&message)) {
    notice_failure(std::move(news->failure));
  } else if (std::holds_alternative<StatusRequest>(message)) {
    connection_.queue(Heartbeat{status_.read()});
  } else if (const auto* pong = std::get_if<ClockPong>(&message)) {
    take_pong(*pong);
  } else if (std::holds_alternative<Goodbye>(message)) {
    is_done_ = true;
  }
  changed_.notify_all();
}

void Spoke::take_pong(const ClockPong& pong) {
  is_ping_on_its_way_ = false;
  const std::optional<ClockOffset> offset =
      measurement_.add(pong.sent_ns, pong.answered_ns, nanoseconds_now());
  if (!offset) return;
  clock_offset_ = *offset;
  next_ping_ = Clock::now() + options_.clock_interval;
}

void Spoke::keep_time(Clock::time_point now) {
  const bool is_first_status = has_spoken_ && !has_told_status_;
  if (now >= next_heartbeat_ || is_first_status) {
    next_heartbeat_ = now + options_.heartbeat_interval;
    has_told_status_ |= is_first_status;
    if (!connection_.has_unsent() || is_first_status) connection_.queue(Heartbeat{status_.read()});
  }
  if (now >= next_ping_ && !is_ping_on_its_way_) {
    is_ping_on_its_way_ = true;
    connection_.queue(ClockPing{nanoseconds_now()});
  }
}

void Spoke::notice_failure(RankFailure failure) {
  if (!is_done_ && !pending_) pending_ = std::move(failure);
}

void Spoke::lose_rank_0(std::string what) {
  // Where rank 0 is gone because of what this rank did, that is the news.
  if (!reported_.empty()) {
    notice_failure(
        {.rank = options_.rank, .host = options_.host, .what = reported_, .last_action = status_.read()});
    return;
  }
  const std::string own = status_.read();
  notice_failure({.rank = {0},
                  .host = host_of_rank_0_,
                  .what = std::move(what),
                  .last_action = status_of_rank_0_,
                  .others = own.empty() ? "" : fmt::format("rank {}: {}", options_.rank.value, own)});
}

bool Spoke::is_over(Clock::time_point now) {
  if (pending_ || is_done_) return true;
  if (!is_stopping_) return false;
  if (reported_.empty()) return true;
  // Rank 0 has to hear of it before the connection closes.
  if (!stop_limit_) stop_limit_ = now + 3 * options_.heartbeat_interval + std::chrono::seconds(2);
  return now >= *stop_limit_;
}

void Spoke::flush_for(Milliseconds limit) {
  const Clock::time_point until = Clock::now() + limit;
  while (connection_.has_unsent() && connection_.flush() && connection_.has_unsent()) {
    if (!wait_ready(connection_.descriptor(), POLLOUT, until)) return;
  }
}

// ---- other threads ----

std::string Spoke::exchange(ExchangeKind kind, std::string_view bytes, const Combine&, Milliseconds limit) {
  std::unique_lock lock(mutex_);
  throw_if_failed();
  outcome_.reset();
  connection_.queue(Contribution{.kind = kind, .number = num_exchanges_, .bytes = std::string(bytes)});
  wake();
  // Rank 0 gives up first, since it knows who is missing.
  const bool is_in_time =
      changed_.wait_for(lock, limit + options_.dead_after, [&] { return failure_ || outcome_ || is_done_; });
  throw_if_failed();
  base::require(is_in_time, "rank 0 on {} did not answer to the {} within {}: not all ranks have come to it",
                host_of_rank_0_, exchange_name(kind), limit_text(limit));
  base::require(outcome_.has_value(), "the run has ended before the {}", exchange_name(kind));
  if (outcome_->is_refusal) throw base::UserError(outcome_->bytes);
  base::check(outcome_->kind == kind && outcome_->number == num_exchanges_,
              "ranks do not exchange the same: rank 0 answers {} {}, this rank asked for {} {}",
              exchange_name(outcome_->kind), outcome_->number, exchange_name(kind), num_exchanges_);
  ++num_exchanges_;
  return std::move(outcome_->bytes);
}

void Spoke::report_failure(std::string_view what) {
  {
    const std::lock_guard lock(mutex_);
    if (!reported_.empty() || failure_ || is_done_) return;
    reported_ = what.empty() ? "failed" : what;
    connection_.queue(Heartbeat{status_.read()});
    connection_.queue(FailureReport{reported_});
  }
  wake();
}

void Spoke::goodbye(Milliseconds limit) {
  std::unique_lock lock(mutex_);
  throw_if_failed();
  connection_.queue(Goodbye{});
  wake();
  const bool is_in_time = changed_.wait_for(lock, limit, [&] { return failure_ || is_done_; });
  throw_if_failed();
  base::require(is_in_time, "rank 0 on {} did not answer to the goodbye within {}", host_of_rank_0_,
                limit_text(limit));
}

ClockOffset Spoke::clock_offset() const {
  const std::lock_guard lock(mutex_);
  return clock_offset_;
}

}  // namespace plenum::control
