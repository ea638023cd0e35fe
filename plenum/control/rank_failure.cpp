#include "plenum/control/rank_failure.h"

#include <utility>

#include <fmt/format.h>

namespace plenum::control {

std::string failure_text(const RankFailure& failure) {
  std::string text = fmt::format("rank {} on {}: {}", failure.rank.value, failure.host, failure.what);
  if (!failure.last_action.empty()) text += fmt::format("; its last action: {}", failure.last_action);
  if (!failure.others.empty()) text += fmt::format("; meanwhile {}", failure.others);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

RankFailed::RankFailed(RankFailure failure)
    : std::runtime_error(failure_text(failure)), failure_(std::move(failure)) {}

}  // namespace plenum::control
