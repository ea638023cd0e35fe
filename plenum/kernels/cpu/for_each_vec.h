#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {

/// Calls body(i, n) for the vectors of a row: n elements from i on, kLanes known to the compiler and at last
/// what is left.
template <typename Body>
[[gnu::always_inline]] inline void for_each_vec(std::int64_t width, Body body) {
  constexpr auto kStep = static_cast<std::int64_t>(kLanes);
  std::int64_t i = 0;
  for (; i + kStep <= width; i += kStep) body(i, std::integral_constant<std::size_t, kLanes>());
  if (i < width) body(i, static_cast<std::size_t>(width - i));
}

/// The first n lanes, and zeros.
template <typename Count>
[[gnu::always_inline]] inline Vec first_lanes(Vec value, Count n) {
  Vec first = {};
  store_first(reinterpret_cast<float*>(&first), value, n);
  return first;
}

}  // namespace plenum::kernels::cpu
