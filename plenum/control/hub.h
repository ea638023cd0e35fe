#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plenum/control/admission.h"
#include "plenum/control/star.h"

namespace plenum::control {

/// The centre of the star, at rank 0: hears the others, collects what they contribute, and tells everybody
/// what happened to one of them.
class Hub final : public Star {
 public:
  Hub(Options options, std::vector<AdmittedRank> ranks, OnFailure on_failure);
  ~Hub() override;

  std::string exchange(ExchangeKind kind, std::string_view bytes, const Combine& combine,
                       Milliseconds limit) override;
  void report_failure(std::string_view what) override;
  /// Waits until all others have said goodbye.
  void goodbye(Milliseconds limit) override;
  ClockOffset clock_offset() const override { return {.seconds = 0, .error_seconds = 0}; }

 private:
  struct Peer {
    base::Rank rank;
    std::string host;
    std::optional<Connection> connection;  ///< none once it has left
    std::string status = {};
    Clock::duration heard_at = {};  ///< by the clock of this process's running time
    std::optional<Contribution> contribution = {};
    bool has_said_goodbye = false;
    bool has_answered = false;  ///< said what it does since it was asked, in a failure
  };

  /// Running, until a rank fails; then Settling, until it shows on the others, and Asking them what they wait
  /// for; then Telling, until all have heard of it. A refusal goes to Telling at once.
  enum class Phase { Running, Settling, Asking, Telling };

  void serve() override;
  std::vector<Waiting> waiting_connections(Clock::time_point& until) const;
  void hear_peers();
  void take(Peer& peer, Message&& message);
  void lose(Peer& peer);
  void send_heartbeats(Clock::time_point now);
  void look_for_silence();
  void flush();
  bool is_over(Clock::time_point now) const;
  void begin_failure(base::Rank rank, std::string what);
  void pursue_failure(Clock::time_point now);
  void ask();
  bool has_all_answers() const;
  void tell();
  void begin_telling();
  std::string what_others_do(base::Rank failed) const;

  bool has_all_contributions() const;
  std::vector<std::string> take_contributions(ExchangeKind kind, std::string_view own);
  [[noreturn]] void fail_exchange(ExchangeKind kind, Milliseconds limit) const;
  std::string missing_peers(bool (*is_missing)(const Peer&)) const;

  std::vector<Peer> peers_;
  Phase phase_ = Phase::Running;
  Clock::time_point phase_end_;
  Clock::time_point stop_limit_ = Clock::time_point::max();  ///< of the end that the destructor asks for
  std::optional<RankFailure> pending_;                       ///< the failure, from when it is noticed
  std::uint32_t num_exchanges_ = 0;
};

}  // namespace plenum::control
