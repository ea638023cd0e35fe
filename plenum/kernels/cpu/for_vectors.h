#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {

/// Calls body(index, lanes) for vectors that cover [begin, end). All have kLanes lanes, a constant that makes
/// load_first and store_first plain moves, but for the last, which may have fewer.
template <typename Body>
[[gnu::always_inline]] inline void for_vectors(std::int64_t begin, std::int64_t end, Body body) {
  constexpr auto kStep = static_cast<std::int64_t>(kLanes);
  std::int64_t i = begin;
  for (; i + kStep <= end; i += kStep) body(i, std::integral_constant<std::size_t, kLanes>());
  if (i < end) body(i, static_cast<std::size_t>(end - i));
}

/// The first `lanes` lanes of a value, and zeros.
template <typename Lanes>
[[gnu::always_inline]] inline Vec first_lanes(Vec value, Lanes lanes) {
  Vec first = {};
  store_first(reinterpret_cast<float*>(&first), value, lanes);
  return first;
}

}  // namespace plenum::kernels::cpu
