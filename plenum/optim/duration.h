#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plenum::optim {

enum class DurationUnit : std::uint8_t {
  Steps,      ///< st
  Tokens,     ///< tok, padding left out
  Sequences,  ///< sp
  Epochs,     ///< ep
  Run,        ///< dur: a share of the whole run
  Seconds,    ///< s, min, h, d: by the clock
};

/// A length of training, in the unit that its author thinks in.
struct Duration {
  double amount = 0;
  DurationUnit unit = DurationUnit::Steps;

  friend bool operator==(const Duration&, const Duration&) = default;
};

/// "1000st", "2e9tok", "5000sp", "3ep", "0.06dur"; a bare number counts steps. Throws UserError naming `what`
/// for anything else, a negative amount, or a share above 1.
Duration parse_duration(std::string_view text, std::string_view what);

/// The same, or a time by the clock: "90s", "10min", "2h", "1d".
Duration parse_interval(std::string_view text, std::string_view what);

/// What parse_interval reads back as the same value.
std::string to_string(const Duration& duration);

/// What a run does in a step, by which durations become steps.
struct RunLength {
  std::uint64_t steps_per_epoch = 0;
  double tokens_per_step = 0;     ///< expected
  double sequences_per_step = 0;  ///< expected
};

/// The number of steps of a duration other than a time, rounded up: at least 1 unless it is 0. A share of the
/// run needs `total_steps`. Throws UserError naming `what` where that is absent or the result is out of
/// reach.
std::uint64_t num_steps(const Duration& duration, const RunLength& run, std::string_view what,
                        std::optional<std::uint64_t> total_steps = std::nullopt);

}  // namespace plenum::optim
