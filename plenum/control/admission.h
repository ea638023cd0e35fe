#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plenum/base/ids.h"
#include "plenum/control/connection.h"
#include "plenum/control/handshake.h"
#include "plenum/control/network_address.h"

namespace plenum::control {

/// A rank that has shown that it belongs to the run.
struct AdmittedRank {
  base::Rank rank;
  std::string host;
  Connection connection;
};

/// The door of rank 0: lets in the other ranks of its run, each once, and nobody else. Whoever connects is a
/// stranger until it has shown the run's key; a stranger costs a few hundred bytes, has a time limit, and
/// when there are too many, one of those from the address that most of them come from has to go.
class Admission {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    std::uint32_t num_ranks = 1;
    std::string host;  ///< of rank 0
    std::chrono::milliseconds handshake_limit{5000};
    std::size_t most_strangers = 64;
  };

  Admission(Listener listener, const Key& key, Options options);

  /// All other ranks, in order. The socket is closed when it returns or throws. Throws UserError naming those
  /// that are missing at that time, after telling it to those that have come.
  std::vector<AdmittedRank> admit_all(Clock::time_point until);

 private:
  struct Stranger {
    Descriptor socket;
    std::string address;
    Hello hello;
    std::string received;  ///< at most a Claim
    Clock::time_point deadline;
  };

  void wait(Clock::time_point until);
  void forget_ranks_that_left();
  void hear_strangers();
  /// False when it is to be sent away.
  bool hear(Stranger& stranger);
  bool decide(Stranger& stranger, const Claim& claim);
  void accept_strangers();
  void greet(Descriptor socket, std::string address);
  void evict_stranger();
  std::vector<std::uint32_t> missing_ranks() const;
  [[noreturn]] void give_up();

  Listener listener_;
  const Key key_;
  const Options options_;
  std::vector<std::optional<AdmittedRank>> admitted_;  ///< by rank; [0] stays empty
  std::vector<Stranger> strangers_;                    ///< in the order in which they came
  std::uint64_t num_refused_ = 0;                      ///< claims with a wrong MAC
  Clock::time_point begin_;
};

}  // namespace plenum::control
