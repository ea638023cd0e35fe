#include "plenum/optim/duration.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "plenum/base/check.h"
#include "plenum/base/units.h"

namespace plenum::optim {
namespace {

struct Suffix {
  std::string_view text;
  DurationUnit unit;
  double amount = 1;  ///< of the unit
};
/// Of one unit the largest amount comes first.
constexpr std::array<Suffix, 9> kSuffixes = {{{"st", DurationUnit::Steps},
                                              {"tok", DurationUnit::Tokens},
                                              {"sp", DurationUnit::Sequences},
                                              {"ep", DurationUnit::Epochs},
                                              {"dur", DurationUnit::Run},
                                              {"d", DurationUnit::Seconds, 86400},
                                              {"h", DurationUnit::Seconds, 3600},
                                              {"min", DurationUnit::Seconds, 60},
                                              {"s", DurationUnit::Seconds}}};

/// Where the number ends: at the first letter that is not the e of an exponent.
std::size_t number_length(std::string_view text) {
  std::size_t end = text.find_first_not_of("0123456789.+-eE");
  if (end == std::string_view::npos) return text.size();
  // "3ep": the e belongs to the unit.
  if (end > 0 && (text[end - 1] == 'e' || text[end - 1] == 'E')) --end;
  return end;
}

double steps_per_unit(DurationUnit unit, const RunLength& run, std::optional<std::uint64_t> total_steps) {
  switch (unit) {
    case DurationUnit::Steps:
      return 1;
    case DurationUnit::Tokens:
      return 1 / run.tokens_per_step;
    case DurationUnit::Sequences:
      return 1 / run.sequences_per_step;
    case DurationUnit::Epochs:
      return static_cast<double>(run.steps_per_epoch);
    case DurationUnit::Run:
      return static_cast<double>(total_steps.value_or(0));
    case DurationUnit::Seconds:
      break;
  }
  return 0;
}

/// Throws UserError, with `examples`, for what is no duration.
Duration parse(std::string_view text, std::string_view what, std::string_view examples) {
  const std::size_t length = number_length(text);
  const std::string_view suffix = text.substr(length);
  const auto known = std::ranges::find(kSuffixes, suffix, &Suffix::text);
  const bool is_known = suffix.empty() || known != kSuffixes.end();
  base::require(is_known && length > 0, "{} must be a duration such as {}: '{}'", what, examples, text);
  Duration duration{base::parse_number(text.substr(0, length), what), DurationUnit::Steps};
  if (!suffix.empty()) duration = {duration.amount * known->amount, known->unit};
  base::require(duration.amount >= 0, "{} must not be negative: {}", what, text);
  base::require(duration.unit != DurationUnit::Run || duration.amount <= 1,
                "{} must be at most the whole run, 1dur: {}", what, text);
  return duration;
}

constexpr std::string_view kExamples =
    "1000st (steps), 2e9tok (tokens), 5000sp (sequences), 3ep (epochs) or 0.06dur (share of the run)";

}  // namespace

Duration parse_duration(std::string_view text, std::string_view what) {
  const Duration duration = parse(text, what, kExamples);
  base::require(duration.unit != DurationUnit::Seconds,
                "{} cannot be a time: '{}'; give {}, and --stop-after {} to end a run by the clock", what,
                text, kExamples, text);
  return duration;
}

Duration parse_interval(std::string_view text, std::string_view what) {
  return parse(text, what, fmt::format("10min, 2h, {}", kExamples));
}

std::string to_string(const Duration& duration) {
  for (const Suffix& suffix : kSuffixes) {
    const double amount = duration.amount / suffix.amount;
    const bool is_whole = suffix.amount == 1 || (amount >= 1 && amount == std::floor(amount));
    if (suffix.unit == duration.unit && is_whole) return fmt::format("{}{}", amount, suffix.text);
  }
  return {};
}

std::uint64_t num_steps(const Duration& duration, const RunLength& run, std::string_view what,
                        std::optional<std::uint64_t> total_steps) {
  base::check(duration.unit != DurationUnit::Seconds, "{} is a time, not a number of steps", what);
  base::require(duration.unit != DurationUnit::Run || total_steps.has_value(),
                "{} cannot be a share of the run, whose length it states: {}", what, to_string(duration));
  if (duration.amount == 0) return 0;
  base::check(run.steps_per_epoch > 0 && run.tokens_per_step > 0 && run.sequences_per_step > 0,
              "a run's steps must hold something");
  const double steps = duration.amount * steps_per_unit(duration.unit, run, total_steps);
  constexpr double kMostSteps = 1e15;  // all numbers below have exact steps between them
  base::require(steps < kMostSteps, "{} is too long to be counted in steps: {}", what, to_string(duration));
  // 0.07 of 100 steps are 7, though the product is a little more.
  constexpr double kRounding = 1e-12;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(steps * (1 - kRounding))));
}

}  // namespace plenum::optim
