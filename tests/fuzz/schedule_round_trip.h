#pragma once

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/core/schedule.h"

#include "tests/fuzz/fuzz.h"

namespace plenum::fuzz {

/// Of a schedule that was parsed: what is printed is read again the same, and check() comes to an end. A
/// printer may refuse what its form cannot hold.
template <typename Print, typename Parse>
void expect_round_trip(const schedule::Schedule& schedule, Print print, Parse parse) {
  constexpr std::size_t kSmall = 4096;
  if (!(parse(print(schedule), "again") == schedule)) __builtin_trap();
  if (schedule.num_actions() * schedule.ranks.size() * (schedule.problem.staleness + 1u) < kSmall) {
    schedule::check(schedule);
  }
}

}  // namespace plenum::fuzz
