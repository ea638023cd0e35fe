#include "plenum/base/gather_rounds.h"

#include <algorithm>

namespace plenum::base {
namespace {

std::size_t num_rounds_of(std::size_t radix, std::size_t num_members) {
  std::size_t num_rounds = 0;
  for (std::size_t num_held = 1; num_held < num_members; num_held *= radix) ++num_rounds;
  return num_rounds;
}

/// The smallest that needs no more rounds than the greatest.
std::size_t radix_for(std::size_t num_members) {
  const std::size_t num_rounds = num_rounds_of(kMostGatherRadix, num_members);
  std::size_t radix = 2;
  while (num_rounds_of(radix, num_members) > num_rounds) ++radix;
  return radix;
}

}  // namespace

std::vector<GatherRound> gather_rounds(std::size_t num_members) {
  std::vector<GatherRound> rounds;
  const std::size_t radix = radix_for(num_members);
  for (std::size_t num_held = 1; num_held < num_members; num_held *= radix) {
    GatherRound& round = rounds.emplace_back();
    const std::size_t end = std::min(num_held * radix, num_members);
    for (std::size_t distance = num_held; distance < end; distance += num_held)
      round.push_back({.distance = distance, .num_records = std::min(num_held, end - distance)});
  }
  return rounds;
}

std::size_t num_gather_messages(std::size_t num_members) {
  // Of gather_rounds(), without its vectors: planners ask for thousands of layouts.
  const std::size_t radix = radix_for(num_members);
  std::size_t num_messages = 0;
  for (std::size_t num_held = 1; num_held < num_members; num_held *= radix)
    num_messages += (std::min(num_held * radix, num_members) - 1) / num_held;
  return num_messages;
}

}  // namespace plenum::base
