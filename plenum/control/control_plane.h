#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/control/clock_offset.h"
#include "plenum/control/fingerprint.h"
#include "plenum/control/launch.h"
#include "plenum/control/rank_failure.h"
#include "plenum/control/star.h"

namespace plenum::control {

/// How the processes of a run find each other, and how long they wait for one another.
struct ControlOptions {
  using Milliseconds = std::chrono::milliseconds;

  std::string run_directory;               ///< where the rendezvous file lies; all processes see it
  std::string interface = {};              ///< see choose_address()
  Milliseconds rendezvous_limit{300'000};  ///< until all processes are there
  Milliseconds handshake_limit{5'000};     ///< until one that connects has shown the secret
  Milliseconds heartbeat_interval{1'000};
  Milliseconds dead_after{15'000};      ///< without a heartbeat; at least three intervals
  Milliseconds clock_interval{10'000};  ///< between measurements of the clock's offset
  std::size_t most_strangers = 64;      ///< connections at a time that have not shown the secret yet
};

/// What the processes of a run say to each other apart from all data: TCP connections between rank 0 and each
/// other rank, made when the run begins, over which nobody comes who does not know the run's secret.
/// docs/decisions/control.md has the protocol and its reasons.
///
/// The exchanges (compare, broadcast, gather, barrier) are called by all ranks in the same order, by one
/// thread of each. They throw RankFailed once a rank has failed, and UserError when the time is over, on rank
/// 0 first, which names who is missing; after that the ranks are out of step, and what is left is
/// report_failure(). The rest may be called by any thread.
class ControlPlane {
 public:
  using Milliseconds = std::chrono::milliseconds;
  /// Called exactly once, by a thread of the plane, if a rank fails, this one included: its connection closes
  /// without a goodbye, it gives no sign of life for `dead_after`, or it reports its failure. Before that
  /// those that are alive have a moment to say what they wait for. May be called as long as the plane lives
  /// and this rank has not said goodbye. Must not throw, nor destroy the plane.
  using OnFailure = std::function<void(const RankFailure&)>;

  static constexpr Milliseconds kExchangeLimit{600'000};
  static constexpr Milliseconds kGoodbyeLimit{60'000};

  /// Waits until all ranks are there. A process on its own (launch.is_alone()) opens nothing and needs no
  /// run directory; its exchanges return at once, and it has nobody to tell of failures.
  ControlPlane(const Launch& launch, const ControlOptions& options, OnFailure on_failure);
  /// Without goodbye() before it, the others take it for a failure of this rank, unless there was one.
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  base::Rank rank() const { return rank_; }
  std::uint32_t num_ranks() const { return num_ranks_; }

  /// Throws UserError with the same line on all ranks unless all have the fingerprint that rank 0 has. After
  /// that the plane is over, and no rank is missed.
  void compare(const Fingerprint& fingerprint, Milliseconds limit = kExchangeLimit);
  /// The bytes that rank 0 gave (up to 64 KiB); those of others are left alone.
  std::string broadcast(std::string_view bytes, Milliseconds limit = kExchangeLimit);
  /// On rank 0 the bytes of each rank (up to 64 KiB), in order; nothing on the others.
  std::vector<std::string> gather(std::string_view bytes, Milliseconds limit = kExchangeLimit);
  void barrier(Milliseconds limit = kExchangeLimit);

  /// What this rank does or waits for now (up to 512 bytes): what others name if it fails, or somebody else
  /// does. Costs less than a microsecond: neither allocates nor waits.
  void say(std::string_view action) noexcept;
  /// Tells all ranks that this one has failed. Returns at once; the destructor waits for a few seconds at
  /// most until it is told. The first failure of a run counts.
  void report_failure(std::string_view what);
  /// The failure, once on_failure has been called or is about to be.
  std::optional<RankFailure> failure() const;

  /// Ends this rank's part without a failure; rank 0 waits for all others.
  void goodbye(Milliseconds limit = kGoodbyeLimit);

  /// Of rank 0, as far as it is known by now; its error is infinite before the first measurement, which takes
  /// milliseconds.
  ClockOffset clock_offset() const;

 private:
  std::string exchange(ExchangeKind kind, std::string_view bytes, const Star::Combine& combine,
                       Milliseconds limit);

  const base::Rank rank_;
  const std::uint32_t num_ranks_;
  std::vector<std::string> hosts_;  ///< by rank; known to rank 0
  std::unique_ptr<Star> star_;      ///< none for a process on its own
};

}  // namespace plenum::control
