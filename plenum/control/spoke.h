#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plenum/control/arrival.h"
#include "plenum/control/star.h"

namespace plenum::control {

/// A point of the star, at every rank but 0.
class Spoke final : public Star {
 public:
  Spoke(Options options, Arrived arrived, OnFailure on_failure);
  ~Spoke() override;

  /// `combine` is rank 0's affair.
  std::string exchange(ExchangeKind kind, std::string_view bytes, const Combine& combine,
                       Milliseconds limit) override;
  void report_failure(std::string_view what) override;
  void goodbye(Milliseconds limit) override;
  ClockOffset clock_offset() const override;

 private:
  void serve() override;
  /// One turn of the service thread. Returns false when there is nothing left to do.
  bool serve_once();
  void take(Message&& message);
  void take_pong(const ClockPong& pong);
  void keep_time(Clock::time_point now);
  void notice_failure(RankFailure failure);
  void lose_rank_0(std::string what);
  bool is_over(Clock::time_point now);
  void flush_for(Milliseconds limit);

  Connection connection_;
  const std::string host_of_rank_0_;
  std::string status_of_rank_0_;
  bool has_told_status_ = false;
  Clock::duration heard_at_{};
  std::optional<RankFailure> pending_;  ///< the failure, from when it is noticed
  std::string reported_;                ///< this rank's own failure
  std::optional<Outcome> outcome_;
  std::uint32_t num_exchanges_ = 0;
  bool is_done_ = false;  ///< rank 0 has said goodbye or refused the run: nobody is missed
  std::optional<Clock::time_point> stop_limit_;
  Clock::time_point next_ping_ = Clock::now();
  bool is_ping_on_its_way_ = false;
  OffsetMeasurement measurement_;
  ClockOffset clock_offset_;
};

}  // namespace plenum::control
