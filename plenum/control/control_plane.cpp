#include "plenum/control/control_plane.h"

#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>

#include "plenum/base/check.h"
#include "plenum/control/admission.h"
#include "plenum/control/arrival.h"
#include "plenum/control/hub.h"
#include "plenum/control/network_address.h"
#include "plenum/control/rendezvous_file.h"
#include "plenum/control/spoke.h"

namespace plenum::control {
namespace {

void check_options(const ControlOptions& options) {
  base::require(
      options.heartbeat_interval.count() > 0 && options.dead_after >= 3 * options.heartbeat_interval,
      "a rank may be taken for dead after three missing heartbeats at the earliest: {} ms between "
      "them, dead after {} ms",
      options.heartbeat_interval.count(), options.dead_after.count());
  base::require(options.most_strangers > 0, "the control plane must let at least one connection ask");
}

/// Rank 0 has a descriptor for each other rank.
void require_descriptors(std::uint32_t num_ranks, std::size_t most_strangers) {
  constexpr std::size_t kOthers = 64;  // datasets, checkpoints, logs
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const std::size_t needed = num_ranks + most_strangers + kOthers;
  base::require(limit.rlim_cur >= needed,
                "rank 0 of {} ranks needs {} open files, and may have {}: raise the limit (ulimit -n {})",
                num_ranks, needed, limit.rlim_cur, needed);
}

/// Waits for the other ranks, at an address that the rendezvous file tells them.
std::vector<AdmittedRank> admit(const Launch& launch, const ControlOptions& options,
                                const std::string& host) {
  const auto until = Admission::Clock::now() + options.rendezvous_limit;
  require_descriptors(launch.num_ranks, options.most_strangers);
  const std::string address = choose_address(options.interface, launch.is_on_one_host());
  Listener listener = listen_at(address);
  const Rendezvous place{.address = address,
                         .port = listener.port,
                         .run = random_array<RunId>(),
                         .secret = launch.secret.empty() ? make_secret() : ""};
  Admission admission(std::move(listener), run_key(launch.secret + place.secret, place.run),
                      {.num_ranks = launch.num_ranks,
                       .host = host,
                       .handshake_limit = options.handshake_limit,
                       .most_strangers = options.most_strangers});
  const PublishedRendezvous file(options.run_directory, place);
  return admission.admit_all(until);
}

void require_exchangeable(std::string_view bytes) {
  base::check(bytes.size() <= kMostExchangeBytes, "an exchange may have {} bytes: {}", kMostExchangeBytes,
              bytes.size());
}

}  // namespace

ControlPlane::ControlPlane(const Launch& launch, const ControlOptions& options, OnFailure on_failure)
    : rank_(launch.rank), num_ranks_(launch.num_ranks) {
  check_options(options);
  const std::string host = host_name();
  hosts_ = {host};
  if (launch.is_alone()) return;
  const Star::Options star{.rank = rank_,
                           .host = host,
                           .heartbeat_interval = options.heartbeat_interval,
                           .dead_after = options.dead_after,
                           .clock_interval = options.clock_interval};
  if (rank_.value == 0) {
    std::vector<AdmittedRank> ranks = admit(launch, options, host);
    for (const AdmittedRank& rank : ranks) hosts_.push_back(rank.host);
    star_ = std::make_unique<Hub>(star, std::move(ranks), std::move(on_failure));
  } else {
    Arrived arrived = arrive({.rank = rank_,
                              .num_ranks = num_ranks_,
                              .host = host,
                              .run_directory = options.run_directory,
                              .secret = launch.secret,
                              .limit = options.rendezvous_limit,
                              .handshake_limit = options.handshake_limit});
    star_ = std::make_unique<Spoke>(star, std::move(arrived), std::move(on_failure));
  }
}

ControlPlane::~ControlPlane() = default;

std::string ControlPlane::exchange(ExchangeKind kind, std::string_view bytes, const Star::Combine& combine,
                                   Milliseconds limit) {
  require_exchangeable(bytes);
  if (star_) return star_->exchange(kind, bytes, combine, limit);
  return combine({std::string(bytes)}).bytes;
}

void ControlPlane::compare(const Fingerprint& fingerprint, Milliseconds limit) {
  const auto judge = [&](const std::vector<std::string>& encoded) -> Star::Combined {
    for (std::size_t rank = 1; rank < encoded.size(); ++rank) {
      const std::optional<Fingerprint> theirs = parse_fingerprint(encoded[rank]);
      base::check(theirs.has_value(), "the fingerprint of rank {} cannot be read", rank);
      const std::string difference = difference_text(*theirs, fingerprint);
      if (difference.empty()) continue;
      return {.is_refusal = true,
              .bytes = fmt::format("rank {} on {} was started differently from rank 0 on {}: {}", rank,
                                   hosts_[rank], hosts_[0], difference)};
    }
    return {};
  };
  exchange(ExchangeKind::Compare, encode(fingerprint), judge, limit);
}

std::string ControlPlane::broadcast(std::string_view bytes, Milliseconds limit) {
  if (rank_.value != 0) bytes = {};
  return exchange(
      ExchangeKind::Broadcast, bytes,
      [&](const std::vector<std::string>& contributions) -> Star::Combined {
        return {.bytes = contributions.front()};
      },
      limit);
}

std::vector<std::string> ControlPlane::gather(std::string_view bytes, Milliseconds limit) {
  std::vector<std::string> gathered;
  exchange(
      ExchangeKind::Gather, bytes,
      [&](std::vector<std::string> contributions) -> Star::Combined {
        gathered = std::move(contributions);
        return {};
      },
      limit);
  return gathered;
}

void ControlPlane::barrier(Milliseconds limit) {
  exchange(
      ExchangeKind::Barrier, "", [](const std::vector<std::string>&) { return Star::Combined{}; }, limit);
}

void ControlPlane::say(std::string_view action) noexcept {
  if (star_) star_->say(action);
}

void ControlPlane::report_failure(std::string_view what) {
  if (star_) star_->report_failure(what);
}

std::optional<RankFailure> ControlPlane::failure() const {
  return star_ ? star_->failure() : std::nullopt;
}

void ControlPlane::goodbye(Milliseconds limit) {
  if (star_) star_->goodbye(limit);
}

ClockOffset ControlPlane::clock_offset() const {
  return star_ ? star_->clock_offset() : ClockOffset{.seconds = 0, .error_seconds = 0};
}

}  // namespace plenum::control
