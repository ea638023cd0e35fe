#pragma once

#include <stdexcept>
#include <string>

#include "plenum/base/ids.h"

namespace plenum::control {

/// What ended a run of several processes.
struct RankFailure {
  base::Rank rank = {};          ///< whose failure it is
  std::string host = {};         ///< where it runs
  std::string what = {};         ///< what it said itself, or how it was found missing
  std::string last_action = {};  ///< what it last said that it does
  std::string others =
      {};  ///< what the other ranks said that they do or wait for: "rank 0: ...; rank 2: ..."

  friend bool operator==(const RankFailure&, const RankFailure&) = default;
};

/// All of it in one line, without control characters.
std::string failure_text(const RankFailure& failure);

/// Thrown from what waits for other ranks once one of them has failed: failure_text().
class RankFailed : public std::runtime_error {
 public:
  explicit RankFailed(RankFailure failure);
  const RankFailure& failure() const { return failure_; }

 private:
  RankFailure failure_;
};

}  // namespace plenum::control
